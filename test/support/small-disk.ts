/** A disk of 16 MiB for some tables, which a test can fill up. */
import { execFileSync } from 'node:child_process';
import { chown, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from 'pg';

const MIB = 1024 * 1024;

export class SmallDisk {
  readonly #superuser: Client;
  readonly #folder: string;
  readonly #tablespace: string;
  #tables: readonly string[] = [];

  private constructor(superuser: Client, folder: string) {
    this.#superuser = superuser;
    this.#folder = folder;
    this.#tablespace = `small_${process.pid}`;
  }

  /** null: only root may mount one. */
  static async mount(superuser: Client): Promise<SmallDisk | null> {
    const folder = await mkdtemp(join(tmpdir(), 'erp-full-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', folder], { stdio: 'ignore' });
    } catch {
      await rm(folder, { recursive: true });
      return null;
    }
    return new SmallDisk(superuser, folder);
  }

  /** Moves tables to it, by their whole names. */
  async take(tables: readonly string[]): Promise<void> {
    const { rows } = await this.#superuser.query<{ data_directory: string }>('SHOW data_directory');
    const { uid, gid } = await stat(rows[0]!.data_directory);
    await chown(this.#folder, uid, gid);
    await this.#superuser.query(`CREATE TABLESPACE ${this.#tablespace} LOCATION '${this.#folder}'`);
    this.#tables = tables;
    await this.#move(this.#tablespace);
  }

  /** Leaves no room on it; the last page of a table may have some. */
  async fill(): Promise<void> {
    await writeFile(join(this.#folder, 'filler'), Buffer.alloc(32 * MIB)).catch(() => {});
  }

  makeRoom(): Promise<void> {
    return rm(join(this.#folder, 'filler'), { force: true });
  }

  /** Moves the tables back, and unmounts it. */
  async unmount(): Promise<void> {
    await this.makeRoom();
    await this.#move('pg_default');
    await this.#superuser.query(`DROP TABLESPACE IF EXISTS ${this.#tablespace}`);
    execFileSync('umount', [this.#folder]);
    await rm(this.#folder, { recursive: true });
  }

  async #move(tablespace: string): Promise<void> {
    for (const table of this.#tables) await this.#superuser.query(`ALTER TABLE ${table} SET TABLESPACE ${tablespace}`);
  }
}
