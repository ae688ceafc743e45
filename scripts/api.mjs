// The public surface as reviewed text: one report in etc/ for each entry of the package's exports.
//
//   node scripts/api.mjs            fail when a report is not what dist says
//   node scripts/api.mjs --update   write the reports
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor'

/** `.` is reported as holdfast.api.md, `./redis` as holdfast-redis.api.md. */
function entriesOf(root) {
  const { name, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return Object.entries(exports)
    .filter(([, target]) => typeof target === 'object')
    .map(([subpath, { types }]) => ({
      report: `${[name, ...subpath.split('/').slice(1)].join('-')}.api.md`,
      types: join(root, types),
    }))
}

function extract({ root, report, types, folder, update, temp }) {
  const complaints = []
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: types,
      compiler: { overrideTsconfig: compilerOptions(dirname(types)) },
      apiReport: { enabled: true, reportFileName: report, reportFolder: folder, reportTempFolder: temp },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      newlineKind: 'lf',
      messages: {
        // Into the report, not onto the console. Two of them would fill it with line numbers and release tags,
        // which change, or are missing, without any change of the surface.
        extractorMessageReporting: {
          default: { logLevel: ExtractorLogLevel.None, addToApiReportFile: true },
          'ae-undocumented': { logLevel: ExtractorLogLevel.None },
          'ae-missing-release-tag': { logLevel: ExtractorLogLevel.None },
        },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(root, 'package.json'),
  })
  const { apiReportChanged } = Extractor.invoke(config, {
    localBuild: update,
    messageCallback(message) {
      message.handled = true
      if (message.logLevel === 'error') complaints.push(message.text)
    },
  })
  return { changed: apiReportChanged, complaints }
}

// Reads the declarations by its own, older compiler, which knows the options only when they are spelled out.
const compilerOptions = (include) => ({
  compilerOptions: {
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable'],
    module: 'nodenext',
    moduleResolution: 'nodenext',
    strict: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    noEmit: true,
    types: ['node'],
  },
  include: [include],
})

/**
 * @param {{ root: string, update: boolean }} options
 * @returns {string[]} what is wrong, or with `update` what was written
 */
export function apiReports({ root, update }) {
  const folder = join(root, 'etc')
  mkdirSync(folder, { recursive: true })
  const temp = mkdtempSync(join(tmpdir(), 'holdfast-api-'))
  try {
    const entries = entriesOf(root)
    const outcomes = entries.flatMap(({ report, types }) => {
      const { changed, complaints } = extract({ root, report, types, folder, update, temp })
      const news = update
        ? `wrote etc/${report}`
        : `etc/${report} is not what is built: npm run api, and review it`
      return [...complaints.map((text) => `${report}: ${text}`), ...(changed ? [news] : [])]
    })
    return [...outcomes, ...strays({ folder, entries, update })]
  } finally {
    rmSync(temp, { recursive: true })
  }
}

/** Reports of entries that are no more. */
function strays({ folder, entries, update }) {
  const known = new Set(entries.map(({ report }) => report))
  return readdirSync(folder)
    .filter((name) => name.endsWith('.api.md') && !known.has(name))
    .map((name) => {
      if (update) rmSync(join(folder, name))
      return update ? `removed etc/${name}` : `etc/${name} belongs to no entry of exports`
    })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
  if (!existsSync(join(root, 'dist'))) throw new Error(`${basename(root)} is not built: npm run build`)
  const update = process.argv.includes('--update')
  const news = apiReports({ root, update })
  for (const line of news) console.log(line)
  if (!update && news.length > 0) process.exitCode = 1
}
