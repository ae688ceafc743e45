import { createConnection } from 'mysql2/promise'
import type { Connection } from 'mysql2/promise'

import type { Play } from './play.ts'
import { belief } from './play.ts'
import { crashOfHolder } from './setnx.ts'
import type { Specimen } from './specimen.ts'

/** A row with a unique name: to insert it is to have the lock, to delete it is to give it back. */
class RowLock {
  private readonly connection: Connection
  private readonly name: string

  constructor(connection: Connection, name: string) {
    this.connection = connection
    this.name = name
  }

  async tryAcquire(holder: string): Promise<boolean> {
    try {
      await this.connection.execute('INSERT INTO lab_row_lock (name, holder) VALUES (?, ?)', [
        this.name,
        holder,
      ])
      return true
    } catch (error) {
      if ((error as { code?: unknown }).code === 'ER_DUP_ENTRY') return false
      throw error
    }
  }

  async release(holder: string): Promise<void> {
    await this.connection.execute('DELETE FROM lab_row_lock WHERE name = ? AND holder = ?', [
      this.name,
      holder,
    ])
  }
}

export const mysqlRow: Specimen = {
  id: 'mysql-row-without-lease',
  title: 'A row in MySQL without a lease',
  flaw: 'the row of a holder that crashed stays, and so does everybody behind it',
  needs: 'mysql',
  fault: 'holder crashes',
  caughtBy: 'liveness',

  async flawed(play: Play) {
    const one = await connectionOf(play)
    const two = await connectionOf(play)
    await two.query(
      'CREATE TABLE IF NOT EXISTS lab_row_lock (name VARCHAR(100) PRIMARY KEY, holder VARCHAR(100) NOT NULL)',
    )
    play.finally(() => two.query('DROP TABLE lab_row_lock'))
    const [a, b] = [play.actor('A'), play.actor('B')]
    const take = (connection: Connection, holder: string) => async () =>
      (await new RowLock(connection, play.name).tryAcquire(holder)) ? belief(play.serial()) : null
    await a.takes(take(one, 'A'))
    one.destroy()
    play.diary.fault('kill', 'A', 'the holder crashes')
    await play.mustGet(b, take(two, 'B'), 1500)
  },

  ours: { run: (play) => crashOfHolder(play, play.servers.mysql?.url ?? '') },
}

async function connectionOf(play: Play): Promise<Connection> {
  const connection = await createConnection({ uri: play.servers.mysql?.url ?? '' })
  play.finally(() => connection.destroy())
  return connection
}
