import { describe, expect, it } from 'vitest'

import { parseUrl } from '../../../../src/stores/sql/open.ts'

const PLACES = [
  'postgres://h/db',
  'postgres://ann:p%40%2F%3F@[::1]:5432/db',
  'postgres://ann:p&table=x&@h/&schema=y',
  'postgres://ann:p ss%zz@%2Fvar%2Frun/my db',
  'mysql://ann:\'"{}|^$+,;=@H.Example:3306/d%2Fb',
]
/** As people write them for the drivers, and for others who read the same variable. */
const SETTINGS = [
  'sslmode=verify-full&sslrootcert=/etc/a b.pem',
  'ssl={"rejectUnauthorized":false}',
  'ssl=%7B%22ca%22%3A%22x%2By%22%7D',
  'options=-c search_path%3Dx -c a=b',
  'application_name=my+app%2B1',
  'timezone=%2B02:00&charset=utf8mb4',
  'host=/cloudsql/a:b:c&port=5432',
  'connection_limit=5&pgbouncer=true',
  'password=a%26table=b',
  'sometable=x&schemas=y',
  'flag&a=1&a=%zz&;',
]

describe('what is of the store is taken out of a URL, and nothing else is written anew', () => {
  it.each(PLACES.flatMap((place) => SETTINGS.map((setting) => [place, setting] as const)))(
    '%s?%s',
    (place, setting) => {
      const plain = `${place}?${setting}`
      expect(parseUrl(plain)).toEqual({ uri: plain, options: {} })
      const options = { table: 't', schema: 's' }
      expect(parseUrl(`${place}?table=t&${setting}&schema=s#end`)).toEqual({ uri: `${plain}&#end`, options })
      expect(parseUrl(`${place}?schema=s&table=t&${setting}`)).toEqual({ uri: plain, options })
    },
  )
})
