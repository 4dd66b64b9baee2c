// A label says how confidential a text is and whether it came from somewhere that is not trusted.
// Joining can only raise. Denial lives elsewhere; this module only orders.
import { z } from "zod";

export const DATA_CLASSES = ["public", "private", "secret"] as const;
export const DataClass = z.enum(DATA_CLASSES);
export type DataClass = z.output<typeof DataClass>;

export const Label = z.strictObject({ class: DataClass, untrusted: z.boolean() });
export type Label = z.output<typeof Label>;

/** What a session starts with: the memory block is in its prompt. */
export const SESSION_START: Label = { class: "private", untrusted: false };

/** A label for a person or the model. */
export function labelText(label: Label): string {
  return label.untrusted ? `${label.class}, untrusted` : label.class;
}

/** As `labelText`, naming trust as well: for what the owner decides by. */
export function fullLabelText({ class: of, untrusted }: Label): string {
  return `${of}, ${untrusted ? "untrusted" : "trusted"}`;
}

/** The higher of two classes. */
export function joinClass(a: DataClass, b: DataClass): DataClass {
  return DATA_CLASSES.indexOf(a) >= DATA_CLASSES.indexOf(b) ? a : b;
}

/** The least label that covers both. */
export function join(a: Label, b: Label): Label {
  return { class: joinClass(a.class, b.class), untrusted: a.untrusted || b.untrusted };
}

/** Whether `label`'s class is at most `limit`. */
export function classWithin(label: DataClass, limit: DataClass): boolean {
  return DATA_CLASSES.indexOf(label) <= DATA_CLASSES.indexOf(limit);
}

/** Whether a text of the label `other` adds nothing to what `label` says. */
export function coversLabel(label: Label, other: Label): boolean {
  return equalLabel(join(label, other), label);
}

export function equalLabel(a: Label, b: Label): boolean {
  return a.class === b.class && a.untrusted === b.untrusted;
}
