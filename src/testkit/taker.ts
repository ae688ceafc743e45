/** How another process opens a store. */
export interface StoreModule {
  readonly url: string
  readonly export: string
  readonly args: unknown
}
