// Command bench compares Modelgate, with everything switched on, with the
// provider called directly, with a bare tuned httputil.ReverseProxy and, where
// it is installed, with nginx: in one run on one machine, every target taking
// its turn in short slices, round after round, so that whatever else the
// machine does falls on all of them alike. Where the system can, targets have
// the first processor for themselves, load and provider the others. It reports CPU time per call of the
// target's process, throughput, latency and memory, and the medians of the
// per-round ratios; single figures depend on the machine, ratios hardly.
//
//	go run ./bench [-rounds 6] [-slice 1.5s] [-binary bin/modelgate] [-only REGEXP] [-targets REGEXP] [-unbudgeted] [-ruled] [-large] [-postgres] [-other NAME=FILE]
//	               [-write docs] [-profile FILE] [-spread]
//	go run ./bench -peers [-rounds 6] [-slice 1.5s] [-only REGEXP] [-targets REGEXP] [-write docs]
//
// The second form compares with other people's products on the same work. It
// builds or unpacks them in the user's cache, never in the repository.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		exit(serveRole(role))
	}
	var o options
	var only, targets string
	flag.IntVar(&o.rounds, "rounds", 6, "how often every target takes its turn")
	flag.DurationVar(&o.slice, "slice", 1500*time.Millisecond, "length of a turn; rows are carried on every second, and a shorter one may hold none of that")
	flag.StringVar(&o.binary, "binary", "bin/modelgate", "the gateway")
	flag.Func("other", "NAME=FILE, another build of the gateway to compare; may be repeated", o.addOther)
	flag.BoolVar(&o.unbudgeted, "unbudgeted", false, "also a gateway whose organization has no budgets, for what they cost")
	flag.BoolVar(&o.ruled, "ruled", false, "also a gateway with six budgets and limits that count every call, for what they cost")
	flag.BoolVar(&o.large, "large", false, "also a gateway with 1,000,000 keys, 1,000 tuples a key and 10,000 models")
	flag.StringVar(&only, "only", "", "scenarios whose names match")
	flag.StringVar(&targets, "targets", "", "targets whose names match, beside the bare proxy")
	flag.BoolVar(&o.postgres, "postgres", false, "also a gateway on a PostgreSQL server that is started for it")
	flag.StringVar(&o.write, "write", "", "folder of the documents, to put tables and charts into them")
	flag.StringVar(&o.profile, "profile", "", "write a CPU profile of the first gateway under the load of all scenarios to this file, and measure nothing")
	flag.BoolVar(&o.ablate, "ablate", false, "only what each part costs or saves that can be switched off: the gateway with and without it, in the scenarios that decide")
	flag.BoolVar(&o.peers, "peers", false, "obtain other people's products into a cache and compare with them, and nothing else")
	flag.BoolVar(&o.spread, "spread", false, "let targets, load and provider share all processors")
	flag.Parse()
	var err error
	if o.only, err = regexp.Compile(only); err != nil {
		exit(err)
	}
	if o.targets, err = regexp.Compile(targets); err != nil {
		exit(err)
	}
	if o.ablate {
		o.only, o.targets = regexp.MustCompile(`^door, 1 KB, (TLS upstream, )?c=32$|TLS upstream, 50 ms`), regexp.MustCompile(`^modelgate, (interval|standard)`)
	}
	if !o.spread {
		if err := leaveProcessor(); err != nil {
			exit(err)
		}
	}
	exit(run(&o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

type options struct {
	rounds         int
	slice          time.Duration
	binary         string
	others         []gateway // beside the usual ones
	only, targets  *regexp.Regexp
	postgres       bool
	write, profile string
	unbudgeted     bool
	ruled          bool
	ablate         bool
	spread         bool
	large          bool
	peers          bool
	ways           []way // how peers are set up
}

func (o *options) addOther(text string) error {
	name, file, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("want NAME=FILE")
	}
	o.others = append(o.others, gateway{name: name, binary: file, fsync: "interval"})
	return nil
}

func run(o *options) error {
	var err error
	var missing []absent
	kinds := scenarios()
	if o.peers {
		kinds = peerScenarios()
		if o.ways, missing, err = obtainPeers(o); err != nil {
			return err
		}
	}
	f, err := startTargets(o)
	if err != nil {
		return err
	}
	defer f.stop()
	targets := f.targets
	if o.profile != "" {
		return profile(o, targets)
	}
	results := &results{Machine: machine(), Sync: syncTime(), Missing: append(missing, f.missing...)}
	for _, sc := range kinds {
		if !o.only.MatchString(sc.Name) || sc.Rare && o.only.String() == "" {
			continue
		}
		fmt.Fprintln(os.Stderr, "bench:", sc.Name)
		var able []*target
		for _, t := range targets {
			if t.takesPart(&sc) {
				able = append(able, t)
			}
		}
		lines, err := measure(o, &sc, able)
		if err != nil {
			return err
		}
		results.Lines = append(results.Lines, lines...)
	}
	if o.peers {
		return results.reportPeers(o, os.Stdout)
	}
	if o.only.MatchString("footprint") {
		results.Footprint, err = footprint(o, f.providers)
	}
	return errors.Join(err, results.report(o, os.Stdout))
}
