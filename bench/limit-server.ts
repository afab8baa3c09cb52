/** The least a server can do: node:http and pg, PostgreSQL builds the JSON text, Node forwards it. Nothing is checked. */
import http from 'node:http';
import pg from 'pg';

const COLUMNS =
  'id, number, account_id, status, currency, amount, tax, is_paid, issue_date, due_date, region, notes, owner_id, visibility, created_at';
const INSERT = COLUMNS.replace('id, ', '').replace(', created_at', '');
const page = (query: string): string => `SELECT coalesce(json_agg(t), '[]')::text FROM (${query}) t`;
const first = (take: number): string => `SELECT ${COLUMNS} FROM bench.invoice ORDER BY id LIMIT ${take}`;

const SQL: Record<string, string> = {
  W1: page(first(50)),
  W2: page(first(200)),
  W3: page(
    `SELECT ${COLUMNS} FROM bench.invoice WHERE status = 'overdue' AND amount >= 5000 AND issue_date >= '2025-01-01' ORDER BY amount DESC, issue_date DESC LIMIT 50`,
  ),
  W4: `SELECT row_to_json(t)::text FROM (SELECT ${COLUMNS} FROM bench.invoice WHERE id = $1) t`,
  W5: `INSERT INTO bench.invoice AS t (${INSERT}) SELECT ${INSERT} FROM json_populate_record(NULL::bench.invoice, $1::json) RETURNING row_to_json(t)::text`,
  W6: `UPDATE bench.invoice AS t SET notes = $2::json->>'notes' WHERE id = $1 RETURNING row_to_json(t)::text`,
  W7: page('SELECT status, sum(amount) AS sum, count(*) AS count FROM bench.invoice GROUP BY status'),
  W8K: page(`SELECT ${COLUMNS} FROM bench.invoice WHERE id > 100000 ORDER BY id LIMIT 50`),
  W9: `SELECT '{"total":' || (SELECT count(*) FROM bench.invoice) || ',"records":' || (${page(first(50))}) || '}'`,
};

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 10, min: 10, idleTimeoutMillis: 0 });

const bodyOf = (request: http.IncomingMessage): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => resolve(text));
    request.on('error', reject);
  });

async function answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  const [, name = '', id] = request.url?.split('/') ?? [];
  const text = SQL[name];
  if (!text) return void response.writeHead(404).end();
  const values =
    name === 'W4' ? [id] : name === 'W5' ? [await bodyOf(request)] : name === 'W6' ? [id, await bodyOf(request)] : [];
  const result = await pool.query<string[]>({ name, text, values, rowMode: 'array' });
  const json = result.rows[0]?.[0];
  if (json === undefined) return void response.writeHead(404).end();
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(json),
  });
  response.end(json);
}

http
  .createServer((request, response) => {
    answer(request, response).catch((error) => {
      console.error(error);
      response.writeHead(500).end();
    });
  })
  .listen(Number(process.env['PORT']), '127.0.0.1', () => console.log('ready limit'));
