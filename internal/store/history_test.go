package store

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"modelgate"
)

// reserves is one exchange of an instance with the database: it asks for so much
// of two counters, or gives so much back. A booking does neither: what it settles
// was held.
type reserves struct {
	ask, back [2]modelgate.Nano
}

// held is the answer to an ask.
type held struct {
	granted bool
	left    [2]modelgate.Nano // of what was granted
}

// sequential is what the database must look like from outside: one that answers
// one exchange after the other, and grants of both counters or of neither.
func sequential(limits [2]modelgate.Nano) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return [2]modelgate.Nano{} },
		Step: func(state, input, output any) (bool, any) {
			used, in, out := state.([2]modelgate.Nano), input.(reserves), output.(held)
			fits := true
			for i := range used {
				used[i] -= in.back[i]
				fits = fits && used[i]+in.ask[i] <= limits[i]
			}
			if in.ask == [2]modelgate.Nano{} {
				return true, used
			}
			if !fits {
				return !out.granted, used
			}
			for i := range used {
				used[i] += in.ask[i]
				if out.left[i] != limits[i]-used[i] {
					return false, used
				}
			}
			return out.granted, used
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
	}
}

// Several instances reserve of a budget and of a limit on requests, give back, and
// book calls, all at once. Whatever they are told could have been told by a
// database that serves one after the other.
func TestReservationsAreLinearizable(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 21).ID
		limits := [2]modelgate.Nano{2_000, 20}
		budget := modelgate.Budget{Level: modelgate.LevelClient, ID: string(client), Period: modelgate.Day, Limit: limits[0]}
		must(t, db.PutBudget(t.Context(), client, "", budget, audit("budget.put")))
		requests := modelgate.RateLimit{Level: modelgate.LevelClient, ID: string(client), Unit: modelgate.UnitRequests, Window: "day", Limit: int64(limits[1])}
		must(t, db.PutRateLimit(t.Context(), client, "", requests, audit("limit.put")))
		c, err := db.Caller(t.Context(), digest(21), nil)
		must(t, err)
		counters := [2]modelgate.Counter{budget.Counter(client, noon), c.Rules[0].Counter(client, noon)}
		began := time.Now()
		var mu sync.Mutex
		var history []porcupine.Operation
		refused := 0
		var instances sync.WaitGroup
		for n := range 4 {
			instances.Go(func() {
				random := rand.New(rand.NewPCG(uint64(n), 7))
				name, seq, booked := fmt.Sprint("i", n), int64(0), 0
				var free [2]modelgate.Nano
				for range 25 {
					seq++
					var in reserves
					var out held
					called := time.Since(began)
					switch what := random.IntN(4); {
					case what < 2 || free == [2]modelgate.Nano{}:
						in.ask = [2]modelgate.Nano{modelgate.Nano(100 + random.IntN(500)), modelgate.Nano(1 + random.IntN(5))}
						var asks []modelgate.Ask
						for i, k := range counters {
							asks = append(asks, modelgate.Ask{Counter: k, Least: in.ask[i], Most: in.ask[i], Room: in.ask[i], Seq: seq})
						}
						answers, err := db.Lease(t.Context(), name, asks)
						if err != nil {
							t.Error(err)
							return
						}
						out = held{answers[0].Granted > 0 && answers[1].Granted > 0, [2]modelgate.Nano{answers[0].Left, answers[1].Left}}
						if out.granted {
							free[0], free[1] = free[0]+in.ask[0], free[1]+in.ask[1]
						}
					case what == 2 && free[0] >= 50 && free[1] >= 1 && booked < 5:
						booked++
						r := row(client, n*100+booked)
						r.At, r.KeyID, r.Cost, r.Rules, r.Holds = noon, key, 50, []int64{c.Rules[0].Rule}, r.Holds.Add(&budget)
						book(t, db, name, r)
						free[0], free[1] = free[0]-50, free[1]-1
					default:
						var returns []modelgate.Return
						for i, k := range counters {
							in.back[i] = modelgate.Nano(random.Int64N(int64(free[i]) + 1))
							free[i] -= in.back[i]
							returns = append(returns, modelgate.Return{Counter: k, Amount: in.back[i], Seq: seq})
						}
						if err := db.GiveBack(t.Context(), name, returns); err != nil {
							t.Error(err)
							return
						}
					}
					mu.Lock()
					history = append(history, porcupine.Operation{ClientId: n, Input: in, Output: out, Call: int64(called), Return: int64(time.Since(began))})
					if in.ask[0] > 0 && !out.granted {
						refused++
					}
					mu.Unlock()
				}
			})
		}
		instances.Wait()
		result, _ := porcupine.CheckOperationsVerbose(sequential(limits), history, time.Minute)
		if result != porcupine.Ok || refused == 0 {
			t.Errorf("the history of %d exchanges, %d refused: %v", len(history), refused, result)
		}
		reconciled(t, db, client)
		// The checker is not deceived: one answer that nobody can have had is found.
		for i := range history {
			if out := history[i].Output.(held); out.granted {
				out.left[1]++
				history[i].Output = out
				break
			}
		}
		if porcupine.CheckOperations(sequential(limits), history) {
			t.Error("a false answer is accepted")
		}
	})
}
