import type { Store } from 'holdfast/store'

export function httpStore(options: {
  readonly url: string
  readonly token: string
  readonly retry?: { readonly retries: number }
}): Store
export function glideStore(at: { readonly host: string; readonly port: number }): Promise<Store>
