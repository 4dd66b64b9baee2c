// The form of every device check, and the table they are printed as.

export interface DeviceCheck {
  /** `part: what`, for example `inference: tokens reused`. */
  readonly check: string;
  readonly figure: string;
  readonly limit: string;
  readonly verdict: "pass" | "fail" | "skip";
}

/** Columns by their widest cell. */
export function checkTable(checks: readonly DeviceCheck[]): string {
  const rows = [
    ["check", "figure", "limit", "verdict"],
    ...checks.map((one) => [one.check, one.figure, one.limit, one.verdict]),
  ];
  const widths = [0, 1, 2].map((i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows.map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ").trimEnd())
    .join("\n");
}
