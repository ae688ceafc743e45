// All mistakes of a sample in one copy of the sources, each behind a switch: `(mutant(17) ? a < b : a <= b)`. So a source is translated once for
// all of them, and a run without any tells which tests come past which mistake.
import { parseAst } from 'vitest/node'

/** What is asked at every switch. A declaration, so that it is there before anything else of the module runs. */
const ASKED = '__mutant'
const QUESTION = `\nfunction ${ASKED}(id) { return globalThis.${ASKED}?.(id) === true }\n`

/** Places of an expression where not every expression may stand. */
const FIXED = new Set(['left', 'key', 'id', 'callee', 'tag', 'source'])
const EXPRESSIONS_LEFT = new Set(['BinaryExpression', 'LogicalExpression'])
const FIXED_IN = new Set(['ExpressionStatement', 'ChainExpression', 'UpdateExpression', 'MethodDefinition'])

/**
 * The sources with their switches; a point that is no place of a program (part of a type, say) gets none.
 * @param {string} text
 * @param {readonly { id: number, line: number, column: number, cut: string, put: string }[]} points
 * @returns {{ text: string, without: Set<number> }}
 */
export function withSwitches(text, points) {
  const starts = lineStarts(text)
  const nodes = nodesOf(parseAst(text, { lang: 'ts' }))
  const without = new Set()
  /** @type {Map<object, { id: number, mutated: string }[]>} */
  const chosen = new Map()
  for (const { id, line, column, cut, put } of points) {
    const start = starts[line - 1] + column
    const end = start + cut.length
    const node = smallestAround(nodes, start, end, put === ';')
    if (node === null) {
      without.add(id)
      continue
    }
    const mutated = text.slice(node.start, start) + put + text.slice(end, node.end)
    chosen.set(node, [...(chosen.get(node) ?? []), { id, mutated }])
  }
  const outermost = (a, b) => a.start - b.start || b.end - a.end || a.depth - b.depth
  return {
    text:
      render(
        text,
        0,
        text.length,
        [...chosen].sort(([a], [b]) => outermost(a, b)),
      ) + QUESTION,
    without,
  }
}

function lineStarts(text) {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

/** Everything that can be put behind a switch: statements, and expressions where any expression may stand. */
function nodesOf(program) {
  const found = []
  const visit = (node, parent, key, depth) => {
    if (Array.isArray(node)) {
      for (const each of node) visit(each, parent, key, depth)
      return
    }
    if (node === null || typeof node !== 'object' || typeof node.type !== 'string') return
    const type = node.type
    if (type.startsWith('TS') && !WRAPPERS.has(type)) {
      found.push({ kind: 'none', start: node.start, end: node.end, depth })
      return
    }
    const kind = kindOf(node, parent, key)
    if (kind !== null) found.push({ kind, start: node.start, end: node.end, depth })
    for (const [name, child] of Object.entries(node)) {
      if (
        name === 'typeAnnotation' ||
        name === 'returnType' ||
        name === 'typeArguments' ||
        name === 'typeParameters'
      ) {
        if (child !== null && child !== undefined)
          found.push({ kind: 'none', start: child.start, end: child.end, depth: depth + 1 })
        continue
      }
      visit(child, node, name, depth + 1)
    }
  }
  visit(program, null, '', 0)
  return found
}

/** Types around something that runs. */
const WRAPPERS = new Set([
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSNonNullExpression',
  'TSParameterProperty',
  'TSAbstractMethodDefinition',
])

function kindOf(node, parent, key) {
  const { type } = node
  if (type === 'VariableDeclaration' || type.endsWith('Declaration')) return null
  if (type === 'BlockStatement' && !['BlockStatement', 'Program', 'IfStatement'].includes(parent?.type))
    return null
  if (type.endsWith('Statement')) return 'statement'
  if (!type.endsWith('Expression') && type !== 'Literal') return null
  // An expression at the beginning of a statement would be taken for the arguments of the line before.
  if (FIXED_IN.has(parent?.type) || parent?.method === true) return null
  if (FIXED.has(key) && !(key === 'left' && EXPRESSIONS_LEFT.has(parent.type))) return null
  return parent?.operator === 'delete' ? null : 'expression'
}

/** Null if what stands there does not run, or cannot be switched. */
function smallestAround(nodes, start, end, statement) {
  let best = null
  for (const node of nodes) {
    if (node.start > start || node.end < end) continue
    if (statement && node.kind === 'expression') continue
    if (
      best === null ||
      node.end - node.start < best.end - best.start ||
      (node.end - node.start === best.end - best.start && node.depth > best.depth)
    )
      best = node
  }
  return best?.kind === 'none' ? null : best
}

/** The text from `start` to `end`, with the switches of the nodes in it. The first of `chosen` is never inside another one. */
function render(text, start, end, chosen) {
  let out = ''
  let at = start
  for (let i = 0; i < chosen.length;) {
    const [node, mutants] = chosen[i]
    const inner = []
    for (i++; i < chosen.length && chosen[i][0].start < node.end; i++) inner.push(chosen[i])
    out += text.slice(at, node.start) + switched(node, mutants, render(text, node.start, node.end, inner))
    at = node.end
  }
  return out + text.slice(at, end)
}

function switched({ kind }, mutants, original) {
  if (kind === 'expression')
    return `(${mutants.map(({ id, mutated }) => `${ASKED}(${id}) ? (${mutated}) : `).join('')}(${original}))`
  return `{ ${mutants.map(({ id, mutated }) => `if (${ASKED}(${id})) { ${mutated}\n } else `).join('')}{ ${original}\n } }`
}
