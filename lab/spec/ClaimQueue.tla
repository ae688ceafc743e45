----------------------------- MODULE ClaimQueue -----------------------------
(* One name, one capacity: the queue of claims as a store keeps it, and what the processes believe of it.           *)
(*                                                                                                                  *)
(* Time is one number that everybody reads; what it does not show (clocks that run at different rates) is the       *)
(* margin's affair and is left out. Requests and releases may be late, lost and doubled, messages about grants too. *)
(* There are two servers: the one that leads takes writes, the other one has a copy that may be old, refuses writes *)
(* and still passes messages on. A planned change of leaders loses nothing.                                         *)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS Procs, None,
          Ttl,        \* how long a grant lasts at the store
          MaxTime, MaxAttempts,
          Told,       \* "after": a grant is told once it is made. "before": the message leaves first
          Belief      \* "asked": only an answer makes believe. "queued": a message does too, counted from the last
                      \* question that was answered with "queued". "arrival": counted from when it came

VARIABLES now,
          store, copy,       \* [holder, until, queue, token] at the leader, and at the other server
          gone,              \* claims that are over for ever: a late copy of their request finds nothing to do
          ask, answer,       \* a request and an answer under way, one of each for every process
          releases, pushes,  \* sent, and never taken away again: each may arrive late, twice, or not at all
          lied,              \* whether a message ever told of a grant that was not made
          pc, att, valid, lastQueued, token
vars == <<now, store, copy, gone, ask, answer, releases, pushes, lied, pc, att, valid, lastQueued, token>>

Claim(p, a) == [p |-> p, att |-> a]
Nobody == [p |-> None, att |-> 0]
Remove(queue, c) == SelectSeq(queue, LAMBDA each : each # c)
InQueue(queue, c) == \E i \in 1..Len(queue) : queue[i] = c

Init ==
  /\ now = 0
  /\ store = [holder |-> Nobody, until |-> 0, queue |-> <<>>, token |-> 0]
  /\ copy = store
  /\ gone = {} /\ releases = {} /\ pushes = {} /\ lied = FALSE
  /\ ask = [p \in Procs |-> None] /\ answer = [p \in Procs |-> None]
  /\ pc = [p \in Procs |-> "idle"] /\ att = [p \in Procs |-> 1]
  /\ valid = [p \in Procs |-> 0] /\ lastQueued = [p \in Procs |-> 0] /\ token = [p \in Procs |-> 0]

(* ---- the rule of the store: pure functions of its state ---- *)

Granted(s, c) == [s EXCEPT !.holder = c, !.until = now + Ttl, !.token = s.token + 1]

\* Whoever has nobody before it is granted, if nobody holds.
Promoted(s) ==
  IF s.holder = Nobody /\ s.queue # <<>>
  THEN [Granted(s, Head(s.queue)) EXCEPT !.queue = Tail(s.queue)]
  ELSE s

Expired(s) == IF s.holder # Nobody /\ s.until <= now THEN Promoted([s EXCEPT !.holder = Nobody]) ELSE s

\* A claim comes, for the first time or again. What is only to be renewed is never brought back.
Claimed(s0, c, renews) ==
  LET s == Expired(s0) IN
  IF c \in gone THEN s
  ELSE IF s.holder = c THEN [s EXCEPT !.until = now + Ttl]
  ELSE IF renews \/ InQueue(s.queue, c) THEN s
  ELSE IF s.holder = Nobody /\ s.queue = <<>> THEN Granted(s, c)
  ELSE [s EXCEPT !.queue = Append(s.queue, c)]

Released(s0, c) ==
  LET s == Expired(s0) IN
  IF s.holder = c THEN Promoted([s EXCEPT !.holder = Nobody])
  ELSE [s EXCEPT !.queue = Remove(s.queue, c)]

\* Grants that a step made, and whom it has to be told: not to whoever has just asked, which hears the answer.
MadeBy(old, new) ==
  IF new.token > old.token /\ new.holder # Nobody THEN {[p |-> new.holder.p, att |-> new.holder.att, token |-> new.token]} ELSE {}
ToldTo(old, new, asker) == {m \in MadeBy(old, new) : m.p # asker}

\* Where messages are only a reason to ask, which is allowed at any time, there is no need to remember them.
Send(messages) == pushes' = IF Belief = "asked" THEN pushes ELSE pushes \union messages

\* A step at the leader. Who tells first tells the same.
Write(new, asker) ==
  /\ store' = new
  /\ Send(ToldTo(store, new, asker))
  /\ UNCHANGED <<copy, lied>>

\* A step at the other server, on what it has: nothing is written. Who tells first has told all the same.
Refused(new, asker) ==
  /\ LET messages == IF Told = "before" THEN ToldTo(copy, new, asker) ELSE {} IN
     /\ Send(messages)
     /\ lied' = (lied \/ messages # {})
  /\ UNCHANGED <<store, copy>>

(* ---- the servers ---- *)

Serve(p) ==
  /\ ask[p] # None
  /\ LET c == Claim(p, ask[p].att)
         new == Claimed(store, c, ask[p].renews)
         kind == IF new.holder = c THEN "held" ELSE IF InQueue(new.queue, c) THEN "queued" ELSE "lost"
     IN /\ Write(new, p)
        /\ answer' = [answer EXCEPT ![p] = [att |-> c.att, sent |-> ask[p].sent, kind |-> kind, token |-> new.token]]
  /\ ask' = [ask EXCEPT ![p] = None]
  /\ UNCHANGED <<now, gone, releases, pc, att, valid, lastQueued, token>>

\* The request goes to the server that does not lead: an old address, a proxy. No answer is believed.
ServeElsewhere(p) ==
  /\ ask[p] # None
  /\ Refused(Claimed(copy, Claim(p, ask[p].att), ask[p].renews), p)
  /\ ask' = [ask EXCEPT ![p] = None]
  /\ UNCHANGED <<now, gone, answer, releases, pc, att, valid, lastQueued, token>>

ServeRelease(c) ==
  /\ c \in releases
  /\ Write(Released(store, c), c.p)
  /\ gone' = gone \union {c}
  /\ UNCHANGED <<now, ask, answer, releases, pc, att, valid, lastQueued, token>>

Expire ==
  /\ Expired(store) # store
  /\ Write(Expired(store), None)
  /\ UNCHANGED <<now, gone, ask, answer, releases, pc, att, valid, lastQueued, token>>

\* Only who tells too early ever tells what the copy says.
Replicate ==
  /\ Told = "before" /\ copy # store /\ copy' = store
  /\ UNCHANGED <<now, store, gone, ask, answer, releases, pushes, lied, pc, att, valid, lastQueued, token>>

(* ---- the processes ---- *)

Ask(p) ==
  /\ ask[p] = None /\ answer[p] = None /\ now < MaxTime
  /\ att[p] <= MaxAttempts
  /\ (pc[p] \in {"idle", "queued"}) \/ (pc[p] = "holding" /\ now < valid[p])
  /\ pc' = [pc EXCEPT ![p] = IF pc[p] = "idle" THEN "asking" ELSE pc[p]]
  /\ ask' = [ask EXCEPT ![p] = [att |-> att[p], sent |-> now, renews |-> pc[p] = "holding"]]
  /\ UNCHANGED <<now, store, copy, gone, answer, releases, pushes, lied, att, valid, lastQueued, token>>

\* Nothing comes of it. Asking again is harmless.
Lose(p) ==
  /\ \/ ask[p] # None /\ ask' = [ask EXCEPT ![p] = None] /\ UNCHANGED answer
     \/ answer[p] # None /\ answer' = [answer EXCEPT ![p] = None] /\ UNCHANGED ask
  /\ pc' = [pc EXCEPT ![p] = IF pc[p] = "asking" THEN "idle" ELSE pc[p]]
  /\ UNCHANGED <<now, store, copy, gone, releases, pushes, lied, att, valid, lastQueued, token>>

Hear(p) ==
  /\ answer[p] # None
  /\ LET a == answer[p] IN
     IF a.att # att[p] THEN UNCHANGED <<pc, valid, lastQueued, token>>
     ELSE CASE a.kind = "held" /\ a.sent + Ttl > now ->
                 /\ pc' = [pc EXCEPT ![p] = "holding"]
                 /\ valid' = [valid EXCEPT ![p] = IF a.sent + Ttl > @ THEN a.sent + Ttl ELSE @]
                 /\ token' = [token EXCEPT ![p] = IF pc[p] = "holding" THEN @ ELSE a.token]
                 /\ UNCHANGED lastQueued
            [] a.kind = "queued" /\ pc[p] # "holding" ->
                 /\ pc' = [pc EXCEPT ![p] = "queued"]
                 /\ lastQueued' = IF Belief = "queued" THEN [lastQueued EXCEPT ![p] = a.sent] ELSE lastQueued
                 /\ UNCHANGED <<valid, token>>
            [] a.kind = "lost" /\ pc[p] = "holding" ->
                 /\ valid' = [valid EXCEPT ![p] = 0]
                 /\ UNCHANGED <<pc, lastQueued, token>>
            [] OTHER -> /\ pc' = [pc EXCEPT ![p] = IF pc[p] = "asking" THEN "idle" ELSE pc[p]]
                        /\ UNCHANGED <<valid, lastQueued, token>>
  /\ answer' = [answer EXCEPT ![p] = None]
  /\ UNCHANGED <<now, store, copy, gone, ask, releases, pushes, lied, att>>

\* A message about a grant. Where only answers are believed it is a reason to ask, which is allowed at any time.
HearPush(m) ==
  /\ Belief # "asked" /\ m \in pushes
  /\ m.att = att[m.p] /\ pc[m.p] = "queued"
  /\ LET until == IF Belief = "queued" THEN lastQueued[m.p] + Ttl ELSE now + Ttl IN
     /\ until > now
     /\ valid' = [valid EXCEPT ![m.p] = until]
  /\ pc' = [pc EXCEPT ![m.p] = "holding"]
  /\ token' = [token EXCEPT ![m.p] = m.token]
  /\ UNCHANGED <<now, store, copy, gone, ask, answer, releases, pushes, lied, att, lastQueued>>

\* It is done, has lost it or gives up waiting: in each case the claim is withdrawn, and the next one is another.
Leave(p) ==
  /\ pc[p] \in {"holding", "queued"}
  /\ releases' = releases \union {Claim(p, att[p])}
  /\ att' = [att EXCEPT ![p] = @ + 1]
  /\ pc' = [pc EXCEPT ![p] = "idle"]
  /\ valid' = [valid EXCEPT ![p] = 0]
  /\ lastQueued' = [lastQueued EXCEPT ![p] = 0]
  /\ token' = [token EXCEPT ![p] = 0]
  /\ UNCHANGED <<now, store, copy, gone, ask, answer, pushes, lied>>

Tick ==
  /\ now < MaxTime /\ now' = now + 1
  /\ UNCHANGED <<store, copy, gone, ask, answer, releases, pushes, lied, pc, att, valid, lastQueued, token>>

Next ==
  \/ Tick \/ Expire \/ Replicate
  \/ \E p \in Procs : Ask(p) \/ Serve(p) \/ ServeElsewhere(p) \/ Lose(p) \/ Hear(p) \/ Leave(p)
  \/ \E c \in releases : ServeRelease(c)
  \/ \E m \in pushes : HearPush(m)

Spec == Init /\ [][Next]_vars

(* ---- what must hold ---- *)

Believes(p) == pc[p] = "holding" /\ now < valid[p]

\* No two believe at once that they hold it.
Exclusion == \A p, q \in Procs : p # q => ~(Believes(p) /\ Believes(q))

\* Whoever believes is the one that the store has, and not for longer than the store does.
NoFalseBelief == \A p \in Procs : Believes(p) => store.holder = Claim(p, att[p]) /\ valid[p] <= store.until

\* A message tells of a grant that was made.
Truthful == ~lied

\* Whoever believes has the latest token: all before it are smaller.
Fenced == \A p \in Procs : Believes(p) => token[p] = store.token

Alike == Permutations(Procs)
=============================================================================
