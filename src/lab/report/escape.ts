const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Names and messages come from elsewhere: in a page they are text, whatever they contain. */
export function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => ENTITIES[char] ?? char)
}

/** A name that can be an element's id and the end of a link. */
export function anchor(id: string): string {
  return `run-${id.replaceAll(/[^a-zA-Z0-9_-]+/g, '-')}`
}

/** `1 run`, `2 runs`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

export function milliseconds(at: number): string {
  return at >= 10_000 ? `${(at / 1000).toFixed(1)} s` : `${at.toFixed(at < 100 ? 1 : 0)} ms`
}
