package fuzzing

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// hung is how long one execution may take, which none does by a factor of a
// thousand unless it never ends.
const hung = 30 * time.Second

// Fuzz is f.Fuzz(target) and, with FUZZ_EXECUTIONS in the environment, that many
// executions in this process as well. A target must not keep its arguments, and
// what it registers with Cleanup is kept until the last execution.
func Fuzz(f *testing.F, target any) {
	f.Helper()
	text, ok := os.LookupEnv("FUZZ_EXECUTIONS")
	if !ok {
		f.Fuzz(target)
		return
	}
	executions, err := strconv.Atoi(text)
	if err != nil {
		f.Fatalf("FUZZ_EXECUTIONS: %v", err)
	}
	seed, err := strconv.ParseUint(os.Getenv("FUZZ_SEED"), 10, 64)
	if err != nil {
		f.Fatalf("FUZZ_SEED: %v", err)
	}
	fn := reflect.ValueOf(target)
	shape := shapeOf(fn.Type())
	name := f.Name()
	folders := []string{filepath.Join("testdata", "fuzz", name)}
	if found := os.Getenv("FUZZ_CORPUS"); found != "" {
		folders = append(folders, filepath.Join(found, name))
	}

	// Seeds are known to f alone, which shows them one after the other. The
	// last one added, before those of testdata, stands for the rest of the run.
	f.Add(shape.mark()...)
	var seeds []input
	f.Fuzz(reflect.MakeFunc(fn.Type(), func(args []reflect.Value) []reflect.Value {
		t := args[0].Interface().(*testing.T)
		in := shape.fromValues(args[1:])
		if !shape.isMark(in) {
			seeds = append(seeds, in)
			fn.Call(args)
			return nil
		}
		var others []input
		for _, folder := range folders {
			more, err := readCorpus(folder, shape)
			if err != nil {
				t.Fatal(err)
			}
			others = append(others, more...)
		}
		r := &run{
			shape: shape, executions: executions, failed: t.Failed, call: shape.caller(fn, t),
			mutator: newMutator(seeds, others, rand.New(rand.NewPCG(seed, uint64(len(name)))), shape),
			keep:    func(in input) (string, error) { return writeFailing(folders[0], in, shape) },
			report:  t.Logf,
		}
		r.do()
		return nil
	}).Interface())
}

// run is one target's executions. It is used by one goroutine, but for the
// count, which the watch reads.
type run struct {
	shape      shape
	executions int
	mutator    *mutator
	call       func(input)
	failed     func() bool                 // whether an execution has reported a failure
	keep       func(input) (string, error) // writes a failing input
	report     func(format string, args ...any)

	done atomic.Int64
}

// do executes until the count is reached or an execution fails.
func (r *run) do() {
	start := time.Now()
	stop := make(chan struct{})
	defer close(stop)
	go r.watch(stop)
	finished := false
	defer func() {
		if !finished || r.failed() {
			file, err := r.keep(r.mutator.current)
			r.report("execution %d failed; its input is in %s (%v)", r.done.Load()+1, file, err)
		}
	}()
	for range r.executions {
		r.call(r.mutator.next())
		if r.failed() {
			return
		}
		r.done.Add(1)
	}
	finished = true
	r.report("execs: %d, %d inputs to begin with, %v", r.done.Load(), len(r.mutator.corpus), time.Since(start).Round(time.Millisecond))
}

// watch ends the process when one execution does not end.
func (r *run) watch(stop <-chan struct{}) {
	last := int64(-1)
	for {
		select {
		case <-stop:
			return
		case <-time.After(hung):
		}
		now := r.done.Load()
		if now == last {
			file, err := r.keep(r.mutator.current)
			panic(fmt.Sprintf("execution %d has not ended after %v; its input is in %s (%v)", now+1, hung, file, err))
		}
		last = now
	}
}
