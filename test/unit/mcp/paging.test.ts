/** Answers in pages: whatever is asked for, the pages together are the answer, and none is too large. */
import assert from 'node:assert/strict';
import { describe, it } from 'mocha';
import { cursorOf, markOf, positionOf } from '../../../services/mcp/cursor.ts';
import { pageOf } from '../../../services/mcp/tools/paging.ts';

type Json = Record<string, unknown>;

const MAX_BYTES = 4_096;
const MARK = markOf('the question');

/** All pages, each as far as its cursor says. */
function pagesOf(answer: Json): { page: Json; piece: { path: string; offset: number; length: number } | null }[] {
  const pages = [];
  for (let cursor: string | undefined; ; ) {
    const [page, { truncated, piece }, next] = pageOf(answer, positionOf(cursor, MARK), MAX_BYTES);
    pages.push({ page, piece });
    const json = JSON.stringify(page);
    assert.ok(Buffer.byteLength(json) + Buffer.byteLength(JSON.stringify(json)) <= MAX_BYTES, 'a page is too large');
    if (!truncated) return pages;
    const last = cursor;
    cursor = cursorOf(next, MARK);
    assert.notEqual(cursor, last, 'the pages do not end');
  }
}

const joined = (pages: readonly { page: Json }[]): Record<string, string> => {
  const files: Record<string, string> = {};
  for (const { page } of pages)
    for (const [path, text] of Object.entries(page['files'] as Record<string, string>))
      files[path] = (files[path] ?? '') + text;
  return files;
};

describe('pages of an answer', () => {
  it('contain all lists, files and members in order', () => {
    const answer = {
      metadataVersion: 3,
      files: Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`f${i}.yaml`, `label: "${'x"\n'.repeat(i)}"`])),
      package: {
        version: 1,
        types: [
          { name: 'A', members: Array.from({ length: 100 }, (_, i) => `A${i}`) },
          { name: 'B', members: Array.from({ length: 100 }, (_, i) => `B${i}`) },
        ],
      },
      components: Array.from({ length: 100 }, (_, i) => ({ fullName: `C${i}`, nested: { list: [i] } })),
      notFound: [],
    };
    const pages = pagesOf(answer);
    assert.ok(pages.length > 5);
    assert.deepEqual(joined(pages), answer.files);
    assert.deepEqual(
      pages.flatMap(({ page }) => page['components']),
      answer.components,
    );
    const members = pages.flatMap(({ page }) => (page['package'] as typeof answer.package).types);
    for (const { name, members: expected } of answer.package.types)
      assert.deepEqual(
        members.filter((type) => type.name === name).flatMap((type) => type.members),
        expected,
      );
    for (const { page } of pages) assert.equal(page['metadataVersion'], 3);
  });

  it('start without delay for any number of members', () => {
    const members = Array.from({ length: 300_000 }, (_, i) => `A${i}`);
    const answer = { package: { version: 1, types: [{ name: 'A', members }] }, components: members };
    const [page, { truncated }, { entry }] = pageOf(answer, positionOf(undefined, MARK), MAX_BYTES);
    assert.equal(truncated, true);
    const [type] = (page['package'] as typeof answer.package).types;
    assert.deepEqual(type?.members, members.slice(0, entry));
  });

  it('split a long file at character boundaries', () => {
    const answer = { files: { 'long.yaml': 'ä🙂"\n\\'.repeat(2_000), 'short.yaml': 'x' } };
    const pages = pagesOf(answer);
    assert.deepEqual(joined(pages), answer.files);
    for (const { page, piece } of pages) {
      for (const text of Object.values(page['files'] as Record<string, string>)) assert.ok(text.isWellFormed());
      if ('long.yaml' in (page['files'] as object)) {
        assert.equal(piece?.path, 'long.yaml');
        assert.equal(piece?.length, answer.files['long.yaml'].length);
      }
    }
    assert.equal(pages[0]!.piece?.offset, 0);
  });

  it('name a change that exceeds a page', () => {
    const long = { fullName: 'Big', properties: [{ from: 'x'.repeat(10_000) }], note: 'y'.repeat(10_000) };
    const pages = pagesOf({ updates: [{ fullName: 'Small' }, long, { fullName: 'After' }] });
    const updates = pages.flatMap(({ page }) => page['updates'] as { fullName: string; properties?: unknown[] }[]);
    assert.deepEqual(
      updates.map(({ fullName }) => fullName),
      ['Small', 'Big', 'After'],
    );
    assert.deepEqual(updates[1]!.properties, []);
  });

  it('continue for the same request only', () => {
    const cursor = cursorOf({ entry: 3, offset: 5 }, MARK);
    assert.deepEqual(positionOf(cursor, MARK), { entry: 3, offset: 5 });
    assert.throws(() => positionOf(cursor, markOf('another question')), { code: 'CURSOR_QUERY_MISMATCH' });
    for (const bad of ['', 'x', cursorOf({ entry: -1, offset: 0 }, MARK), 'A'.repeat(200)])
      assert.throws(() => positionOf(bad, MARK), { code: 'CURSOR_INVALID' });
  });
});
