/** Light and dark, wide and narrow. Nothing is fetched: the page has to work from a mail attachment, years later. */
export const STYLE = `
:root { color-scheme: light dark; --ink: #1c2430; --dim: #667080; --page: #fff; --card: #f5f7fa; --line: #d7dde5;
  --held: #2f7de1; --wait: #9aa7b8; --good: #11783c; --warn: #9a5b00; --bad: #c8102e; --fault: #b06a00; --faultbg: #f0a83044; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf2; --dim: #98a4b5; --page: #11161d; --card: #1a212b; --line: #323c4a;
  --held: #4b96f3; --wait: #68778c; --good: #55c983; --warn: #e8ab4a; --bad: #ff6378; --fault: #f0b45a; --faultbg: #f0a83033; } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1200px; padding: 1rem; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: 0 0 .25rem } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem } h3 { font-size: 1rem; margin: 1rem 0 .25rem } h4 { margin: 1rem 0 .25rem }
a { color: var(--held) } :focus-visible { outline: 3px solid var(--held); outline-offset: 2px }
.dim { color: var(--dim) } .scroll { overflow-x: auto; max-width: 100% }
.counts { display: flex; flex-wrap: wrap; gap: .5rem; list-style: none; margin: 1rem 0; padding: 0 }
.counts li { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .4rem .8rem }
.outcome { font-size: 1.1rem; margin: 1rem 0 0 } .outcome .good { color: var(--good) } .outcome .bad { color: var(--bad) }
.counts b { font-size: 1.3rem; margin-right: .35rem; font-variant-numeric: tabular-nums }
table { border-collapse: collapse; font-size: .86rem; width: 100% } caption { text-align: left; color: var(--dim); padding: .25rem 0 }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .5rem; text-align: left; vertical-align: top }
thead th { color: var(--dim); font-weight: 600; vertical-align: bottom } .fault-name { min-width: 6rem }
.verdicts small { display: block; color: var(--dim); font-size: .76rem }
.held b, .held span { color: var(--good) } .broke b, .broke span { color: var(--warn) } .lucky b { color: var(--good) }
.unexpected { background: color-mix(in srgb, var(--bad) 14%, transparent) } .unexpected b, .unexpected span { color: var(--bad); font-weight: 700 }
.unknown b, .unknown span { color: var(--warn) } .notRun span { color: var(--dim) } td small, li small { color: var(--dim); font-weight: 400 }
.run { border: 1px solid var(--line); border-radius: 8px; margin: .6rem 0; background: var(--card); scroll-margin-top: .5rem }
.run > summary { padding: .6rem .8rem; cursor: pointer } .run > summary .dim { display: block; font-size: .85rem }
.run > .inside { padding: 0 .8rem .8rem }
.verdict-list { columns: 2 20rem; padding-left: 1.1rem; margin: .5rem 0; font-size: .9rem } .verdict-list li { break-inside: avoid }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .8rem; font-size: .85rem; margin: .5rem 0 } .facts dt { color: var(--dim) } .facts dd { margin: 0; overflow-wrap: anywhere }
.timeline { display: grid; grid-template-columns: max-content 1fr; margin: .5rem 0; border: 1px solid var(--line); border-radius: 6px; background: var(--page) }
.labels { padding-top: 34px; border-right: 1px solid var(--line); font-size: .8rem }
.labels div { height: 40px; display: flex; align-items: center; padding: 0 .5rem; max-width: 8.5rem; overflow: hidden; white-space: nowrap; text-overflow: ellipsis }
.zoom { display: flex; gap: .75rem; border: 0; padding: 0; margin: .5rem 0 0; font-size: .85rem } .zoom legend { float: left; margin-right: .75rem; padding: 0 }
.view { overflow-x: auto; min-width: 0 } .view svg { display: block; font: 11px system-ui, sans-serif; min-width: 30rem }
.inside:has(.z4:checked) svg { width: 400%; min-width: 120rem } .inside:has(.z16:checked) svg { width: 1600%; min-width: 480rem }
svg .row { fill: transparent } svg .row.odd { fill: color-mix(in srgb, var(--card) 70%, transparent) }
svg .waiting { fill: var(--wait) } svg .waiting.end-failed { fill: var(--warn) } svg .waiting.end-open { fill: var(--bad) }
svg .held { fill: var(--held) } svg .held.end-open { fill: color-mix(in srgb, var(--held) 55%, transparent) } svg .held.end-lost { fill: var(--warn) }
svg .releasing { fill: color-mix(in srgb, var(--held) 40%, transparent) }
svg .renewal { stroke: #fff; stroke-width: 1.5 } svg text { fill: var(--dim) } svg text.token { font-size: 9px }
svg line.fault { stroke: var(--fault); stroke-width: 1.5; stroke-dasharray: 4 3 } svg rect.fault { fill: var(--faultbg) } svg text.fault { fill: var(--fault); font-weight: 600 }
svg line.violation { stroke: var(--bad); stroke-width: 2 } svg circle.violation { fill: none; stroke: var(--bad); stroke-width: 2.5 } svg text.violation { fill: var(--bad); font-weight: 700 }
svg circle.write { fill: var(--good) } svg text.mark { font-weight: 700; text-anchor: middle } svg text.lost, svg text.write-refused { fill: var(--bad) } svg text.at-risk { fill: var(--warn) }
svg line.axis { stroke: var(--line); stroke-width: 1 }
.violation-text { border-left: 4px solid var(--bad); padding-left: .6rem; overflow-wrap: anywhere } tr.lost td, tr.write-refused td { color: var(--bad) }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1rem; font-size: .8rem; color: var(--dim); padding: 0; margin: .25rem 0; list-style: none }
.legend i { display: inline-block; width: 1.4em; height: .7em; border-radius: 2px; margin-right: .35em }
@media (max-width: 640px) {
  body { padding: .6rem } .verdicts thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
  .verdicts, .verdicts tbody, .verdicts tr, .verdicts th, .verdicts td { display: block; width: 100% }
  .verdicts tr { border: 1px solid var(--line); border-radius: 6px; margin-bottom: .5rem; padding: .3rem } .verdicts .none { display: none }
  .verdicts th, .verdicts td { border: 0; padding: .15rem .4rem } .verdicts td[data-check]::before { content: attr(data-check) ": "; color: var(--dim) }
  .verdicts small { display: inline } .labels div { max-width: 5rem; padding: 0 .3rem }
}
@media print { .run:not([open]) { display: none } }
`
