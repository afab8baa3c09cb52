/** The published documents, for search and reading: the Markdown of each page, and the index that browsers search by. */
import MiniSearch, { type Options } from 'minisearch';
import { type Archive, archives, type Version } from '../../mixins/documents/archives.ts';
import { searchOptions } from '../../mixins/documents/searching.js';
import { nextPiece } from '../../mixins/long-work.ts';
import { CountedCache } from '../../mixins/metrics/counted-cache.ts';
import type { Metrics } from '../../mixins/metrics/metrics.ts';

/** Stored parts of a section. */
interface Section {
  /** In the index that of the page for browsers; as found, as `docs_get` takes it. */
  readonly path: string;
  readonly page: string;
  readonly heading: string;
  readonly excerpt: string;
}

interface StoredIndex {
  readonly options: Options<Section>;
  readonly index: Parameters<typeof MiniSearch.loadJSAsync>[0];
}

const INDEXES_KEPT = 2;

export class Documents {
  readonly #archives = archives();
  readonly #indexes = new CountedCache<string, Promise<MiniSearch<Section>>>({ max: INDEXES_KEPT });

  /** Adds the numbers of its caches to those of the process. */
  register(metrics: Metrics): void {
    metrics.cache('mcp', 'documents', this.#archives.numbers);
    metrics.cache('mcp', 'indexes', this.#indexes);
  }

  /** A version by its name, or the newest; null: there is no such version. */
  version(name: string | undefined): Version | null {
    const { latest } = this.#archives;
    return (name === undefined || name === 'latest' ? latest : this.#archives.find(name)) ?? null;
  }

  /** The text of a page, with or without its suffix; null: there is no such page. */
  async text(version: Version, path: string): Promise<Buffer | null> {
    const archive = await this.#archives.open(version);
    const [page = ''] = path.split('#');
    const file = archive.get(`${page.replace(/\.(?:html|md)$/, '')}.md`) ?? jsonOf(archive, page);
    return file?.body ?? null;
  }

  /** A search takes milliseconds: many at once take turns with other requests. */
  async search(version: Version, query: string, take: number): Promise<Section[]> {
    const index = await this.#index(version);
    await nextPiece();
    const found = index.search(query, searchOptions(query, tokenize));
    return found.slice(0, take).map((one) => ({
      path: markdownOf(String(one['path'])),
      page: String(one['page']),
      heading: String(one['heading']),
      excerpt: String(one['excerpt']),
    }));
  }

  #index(version: Version): Promise<MiniSearch<Section>> {
    let index = this.#indexes.get(version.version);
    if (!index) {
      index = this.#read(version);
      this.#indexes.set(version.version, index);
      index.catch(() => this.#indexes.delete(version.version));
    }
    return index;
  }

  async #read(version: Version): Promise<MiniSearch<Section>> {
    const file = (await this.#archives.open(version)).get('search.json');
    if (!file) throw new Error(`The documents of version ${version.version} have no index.`);
    const stored: StoredIndex = JSON.parse(file.body.toString());
    return MiniSearch.loadJSAsync<Section>(stored.index, stored.options);
  }
}

const tokenize = MiniSearch.getDefault('tokenize') as (text: string) => string[];

/** The page itself, without the place in it. */
const markdownOf = (path: string): string => (path.split('#')[0] ?? '').replace(/\.html$/, '.md');

const jsonOf = (archive: Archive, path: string) => (path.endsWith('.json') ? archive.get(path) : undefined);
