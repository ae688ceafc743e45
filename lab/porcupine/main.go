// A second opinion on the order of calls, by a checker that is not ours: github.com/anishathalye/porcupine.
// Reads a JSON array of histories from standard input, one per name, and writes one verdict for each.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

type call struct {
	Process  string `json:"process"`
	Action   string `json:"action"`
	Owner    string `json:"owner"`
	Token    string `json:"token"`
	Weight   int64  `json:"weight"`
	Capacity int64  `json:"capacity"`
	Call     string `json:"call"`
	// Absent: nobody knows when, or whether, it took effect.
	End *string `json:"end"`

	token   *big.Int
	pending bool
}

type history struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Calls []call `json:"calls"`
}

type verdict struct {
	ID   string `json:"id"`
	Seen string `json:"seen"`
}

// Who holds how much, and the largest tokens of anybody and of those who hold alone.
type state struct {
	holders map[string]int64
	highest *big.Int
	written *big.Int
}

func (s state) key() string {
	owners := make([]string, 0, len(s.holders))
	for owner, weight := range s.holders {
		owners = append(owners, owner+":"+strconv.FormatInt(weight, 10))
	}
	sort.Strings(owners)
	return strings.Join(owners, " ") + "|" + s.highest.String() + "|" + s.written.String()
}

func (s state) without(owner string) map[string]int64 {
	rest := make(map[string]int64, len(s.holders))
	for other, weight := range s.holders {
		if other != owner {
			rest[other] = weight
		}
	}
	return rest
}

// What the call makes of the state; false: it could not have happened.
func (s state) after(c call, kind string) (state, bool) {
	held, has := s.holders[c.Owner]
	switch c.Action {
	case "release":
		return state{s.without(c.Owner), s.highest, s.written}, has
	case "downgrade":
		if !has || held != c.Capacity {
			return s, false
		}
		next := s.without(c.Owner)
		next[c.Owner] = 1
		return state{next, s.highest, s.written}, true
	}
	used := int64(0)
	for _, weight := range s.holders {
		used += weight
	}
	if has || used+c.Weight > c.Capacity {
		return s, false
	}
	alone := c.Weight == c.Capacity
	if kind == "semaphore" {
		alone = false
	} else if alone && c.token.Cmp(s.highest) <= 0 || !alone && c.token.Cmp(s.written) <= 0 {
		return s, false
	}
	next := s.without(c.Owner)
	next[c.Owner] = c.Weight
	made := state{next, s.highest, s.written}
	if kind == "semaphore" {
		return made, true
	}
	if c.token.Cmp(s.highest) > 0 {
		made.highest = c.token
	}
	if alone {
		made.written = c.token
	}
	return made, true
}

func model(kind string) porcupine.Model {
	nothing := big.NewInt(-1)
	m := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{state{map[string]int64{}, nothing, nothing}} },
		Step: func(s, input, _ interface{}) []interface{} {
			c := input.(call)
			next, ok := s.(state).after(c, kind)
			if !ok {
				if c.pending {
					return []interface{}{s}
				}
				return nil
			}
			if c.pending {
				return []interface{}{next, s}
			}
			return []interface{}{next}
		},
		Equal: func(a, b interface{}) bool { return a.(state).key() == b.(state).key() },
	}
	return m.ToModel()
}

func operations(calls []call) ([]porcupine.Operation, error) {
	made := make([]porcupine.Operation, 0, len(calls))
	clients := map[string]int{}
	for _, c := range calls {
		token, ok := new(big.Int).SetString(c.Token, 10)
		if !ok {
			return nil, fmt.Errorf("%q is no token", c.Token)
		}
		from, err := strconv.ParseInt(c.Call, 10, 64)
		if err != nil {
			return nil, err
		}
		to := int64(math.MaxInt64)
		if c.End != nil {
			if to, err = strconv.ParseInt(*c.End, 10, 64); err != nil {
				return nil, err
			}
		}
		c.token, c.pending = token, c.End == nil
		if _, known := clients[c.Process]; !known {
			clients[c.Process] = len(clients)
		}
		made = append(made, porcupine.Operation{ClientId: clients[c.Process], Input: c, Call: from, Return: to})
	}
	return made, nil
}

func main() {
	var histories []history
	if err := json.NewDecoder(os.Stdin).Decode(&histories); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(65)
	}
	words := map[porcupine.CheckResult]string{porcupine.Ok: "held", porcupine.Illegal: "broke", porcupine.Unknown: "unknown"}
	verdicts := make([]verdict, 0, len(histories))
	for _, h := range histories {
		calls, err := operations(h.Calls)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(65)
		}
		verdicts = append(verdicts, verdict{h.ID, words[porcupine.CheckOperationsTimeout(model(h.Kind), calls, 20*time.Second)]})
	}
	if err := json.NewEncoder(os.Stdout).Encode(verdicts); err != nil {
		os.Exit(74)
	}
}
