// From a question's terms to the best rows, best first.
//
// 1. Candidates are the rows whose own or neighbouring words match, by bm25.
// 2. A candidate gains what its scene (the stretch of its log around it) is worth as a document of its
//    own, the days it happened on included. A scene that matches also offers its first row.
// 3. Work is bounded: of terms that are in too many rows or scenes the most common are left out, and of
//    those with the one that is left only the newest count.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { matchQuery, type Terms } from "./words.ts";

/** Weight of a neighbour's words against a text's own. */
const NEAR_WEIGHT = 0.4;
/** Weight of the kinds of things a text or scene names against its own words. */
const KIND_WEIGHT = 0.3;
/** Weight of the words for a scene's days against its own. */
const DAY_WEIGHT = 3;
/** Matches that one search may rank; words that have more say little. */
const MAX_ROWS = 2_000;
const MAX_SCENES = 500;
/** Rows that are looked at beside their scenes. */
const CANDIDATES = 60;

/** Characters from which on a text is told from a chance. */
const LEAST_QUOTED = 16;

/** The ids of the best `k` rows. */
export type Ranker = (terms: Terms, k: number) => number[];

export function ranker(db: DatabaseSync): Ranker {
  const spreadIn = (table: string) =>
    db.prepare(`SELECT count(*) AS n FROM (SELECT 1 FROM ${table} WHERE ${table} MATCH ? LIMIT ?)`);
  const [rowSpread, sceneSpread] = [spreadIn("words"), spreadIn("scenes")];
  // bm25 is the more negative the better.
  const best = db.prepare(
    `WITH found AS MATERIALIZED (
       SELECT id, score FROM (
         SELECT rowid AS id, bm25(words, 1.0, ${NEAR_WEIGHT}, ${KIND_WEIGHT}) AS score FROM words
         WHERE words MATCH ? ORDER BY rowid DESC LIMIT ${MAX_ROWS}
       ) ORDER BY score, id DESC LIMIT ${CANDIDATES}
     ), around AS MATERIALIZED (
       SELECT id, score FROM (
         SELECT rowid AS id, bm25(scenes, 1.0, ${DAY_WEIGHT}, ${KIND_WEIGHT}) AS score FROM scenes
         WHERE scenes MATCH ? ORDER BY rowid DESC LIMIT ${MAX_SCENES}
       ) ORDER BY score LIMIT ${CANDIDATES}
     )
     SELECT one.id AS id FROM (
       SELECT found.id AS id, found.score AS score, rows.scene AS scene
       FROM found JOIN rows ON rows.id = found.id
       UNION ALL SELECT id, 0, id FROM around WHERE id NOT IN (SELECT id FROM found)
     ) AS one LEFT JOIN around ON around.id = one.scene
     ORDER BY one.score + coalesce(around.score, 0), one.id DESC LIMIT ?`,
  );
  return (terms, k) => {
    const query = matchQuery(telling(rowSpread, terms, MAX_ROWS));
    if (query === null) return [];
    const around = matchQuery(telling(sceneSpread, terms, MAX_SCENES)) ?? query;
    return best.all(query, around, k).map((row) => Number(row.id));
  };
}

/** Quoted text is the same text. */
const unquoted = (text: string) => text.replace(/[>\s]+/g, " ").trim();

/**
 * The same texts, but none before an older one that it quotes whole: an answer that repeats what a
 * recall found has all its words, and would else stand before it ever after.
 */
export function originalsFirst<T extends { readonly text: string; readonly time_unix_ms: number }>(
  found: readonly T[],
): T[] {
  const order: { one: T; plain: string }[] = [];
  for (const one of found) {
    const plain = unquoted(one.text);
    const echo = plain.length < LEAST_QUOTED
      ? -1
      : order.findIndex((before) =>
        before.one.time_unix_ms > one.time_unix_ms && before.plain !== plain &&
        before.plain.includes(plain)
      );
    order.splice(echo < 0 ? order.length : echo, 0, { one, plain });
  }
  return order.map(({ one }) => one);
}

/** The rarest terms, as many as one search may look through; the rarest of all in any case. */
function telling(spread: StatementSync, terms: Terms, most: number): Terms {
  const counted = terms
    .map((term) => ({ term, matches: Number(spread.get(matchQuery([term]), most + 1)?.n ?? 0) }))
    .sort((a, b) => a.matches - b.matches);
  let sum = 0;
  return counted.filter(({ matches }, i) => (sum += matches) <= most || i === 0)
    .map(({ term }) => term);
}
