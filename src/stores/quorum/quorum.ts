import type { MaybePromise, Unknown, Voter } from '../../core/contract.ts'
import type { Node } from './node.ts'
import type { QuorumSettings } from './options.ts'

/** The stores that decide together. */
export class Quorum {
  readonly nodes: readonly Node[]
  readonly settings: QuorumSettings
  /** How many have to agree: any two such sets share a store. */
  readonly majority: number

  constructor(nodes: readonly Node[], settings: QuorumSettings) {
    this.nodes = nodes
    this.settings = settings
    this.majority = Math.floor(nodes.length / 2) + 1
  }

  /** Too few stores are well to do without the others. */
  get short(): boolean {
    let well = 0
    for (const node of this.nodes) if (node.well) well++
    return well < this.majority
  }

  /** Asks every store, and hands over each answer as it comes. What cannot be answered at once comes later. */
  askAll<T extends { readonly kind: string }>(
    call: (voter: Voter, at: number) => MaybePromise<T>,
    heard: (answer: T | Unknown, at: number) => void,
  ): void {
    const { nodes, short } = this
    for (const node of nodes) node.ask(call, short, heard)
  }

  ask<T extends { readonly kind: string }>(
    at: number,
    call: (voter: Voter, at: number) => MaybePromise<T>,
    heard: (answer: T | Unknown, at: number) => void,
    needed: boolean = this.short,
  ): void {
    this.nodes[at]?.ask(call, needed, heard)
  }

  /** As `askAll`, where each answer counts as one of a server: it must be known which one that is. */
  askAllKnown<T extends { readonly kind: string }>(
    call: (voter: Voter, at: number) => MaybePromise<T>,
    heard: (answer: T | Unknown, at: number) => void,
  ): void {
    const { nodes, short } = this
    for (const node of nodes) node.askKnown(call, short, heard)
  }

  askKnown<T extends { readonly kind: string }>(
    at: number,
    call: (voter: Voter, at: number) => MaybePromise<T>,
    heard: (answer: T | Unknown, at: number) => void,
  ): void {
    this.nodes[at]?.askKnown(call, this.short, heard)
  }
}
