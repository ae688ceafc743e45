// Caches that people have, with the recipe `cached`: typed, filled once, read, forgotten, and run out by themselves.

const PROGRAM = `
import { Holdfast } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
import { cached } from 'holdfast/recipes'
import type { Cache } from 'holdfast/recipes'
import { Keyv } from 'keyv'
import { createCache } from 'cache-manager'
import { BentoCache, bentostore } from 'bentocache'
import { memoryDriver } from 'bentocache/drivers/memory'

const manager = createCache()
const bento = new BentoCache({
  default: 'memory',
  stores: { memory: bentostore().useL1Layer(memoryDriver({ maxSize: '10mb' })) },
})

const caches: Record<string, Cache> = {
  keyv: new Keyv<string>(),
  'cache-manager': {
    get: (key) => manager.get<string>(key),
    set: (key, text, ttl) => manager.set(key, text, ttl),
    delete: (key) => manager.del(key),
  },
  bentocache: {
    get: (key) => bento.get<string>({ key }),
    set: (key, value, ttl) => bento.set({ key, value, ttl }),
    delete: (key) => bento.delete({ key }),
  },
}

const holdfast = new Holdfast(memoryStore())
for (const [name, cache] of Object.entries(caches)) {
  let loads = 0
  const product = cached(holdfast, {
    cache,
    key: (id: number) => 'product:' + String(id),
    load: async (id) => ({ id, load: ++loads }),
    ttl: 150,
    onError: (error) => console.log(name, String(error)),
  })
  const together = await Promise.all([product.get(1), product.get(1), product.get(1)])
  const kept = await product.get(1)
  await product.forget(1)
  const anew = await product.get(1)
  await new Promise((resolve) => setTimeout(resolve, 200))
  const after = await product.get(1)
  console.log(name, together.map(({ load }) => load).join(), kept.load, anew.load, after.load)
}
await holdfast.close()
await bento.disconnectAll()
`

/** Three at once load once; it is read; after `forget` and after its time it is loaded again. */
const WANTED = ['keyv', 'cache-manager', 'bentocache'].map((name) => `${name} 1,1,1 1 2 3`).join('\n')

export function cacheChecks({ bare }) {
  return {
    'Caches: Keyv, cache-manager, bentocache': async () => {
      const compilerOptions = {
        module: 'nodenext',
        target: 'es2022',
        strict: true,
        skipLibCheck: true,
        types: ['node'],
      }
      bare.files({
        'caches/package.json': { type: 'module' },
        'caches/tsconfig.json': { compilerOptions, files: ['main.ts'] },
        'caches/main.ts': PROGRAM,
      })
      await bare.tool('typescript/lib/tsc.js', ['--project', 'caches'])
      const said = (await bare.node('caches/main.js')).trim()
      if (said !== WANTED) throw new Error(`it said:\n${said}`)
    },
  }
}
