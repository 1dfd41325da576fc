// Command scale installs one operator in many namespaces and prints what each installation costs.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/scale"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	sizes := flags.String("namespaces", "10,50,200", "how many namespaces have the operator after each step")
	trace := flags.Bool("trace", false, "print the requests of the last step in order")
	keep := flags.Bool("keep", false, "keep the logs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "chandlery-bench-")
	if err != nil {
		return fmt.Errorf("making a folder for programs and logs: %w", err)
	}
	if err := programs.Build(ctx, dir, "./cmd/registry", "./cmd/supervisor"); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	c, err := scale.Start(ctx, scale.Options{Root: ".", Dir: dir})
	if err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, dir)
	}
	before := 0
	for text := range strings.SplitSeq(*sizes, ",") {
		size, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		var names []string
		for i := before; i < size; i++ {
			names = append(names, fmt.Sprintf("scale-%04d", i))
		}
		if err := c.Prepare(ctx, names); err != nil {
			return errors.Join(err, c.Stop())
		}
		b, err := c.Install(ctx, before, names)
		if err != nil {
			return errors.Join(err, c.Stop())
		}
		show(b)
		if *trace && size != before && !strings.Contains(*sizes, text+",") {
			for _, r := range b.Requests {
				fmt.Printf("%s %s %s %s/%s %d\n", r.At.Format("05.000"), r.Verb, r.Resource, r.Namespace, r.Name, r.Code)
			}
		}
		before = size
	}
	if !*keep {
		defer os.RemoveAll(dir)
	} else {
		fmt.Println("logs:", dir)
	}
	return c.Stop()
}

func show(b *scale.Batch) {
	n := float64(b.Namespaces)
	fmt.Printf("\n== %d to %d namespaces: %s (%s each), supervisor %s, API server %s of processor time each; memory %.1f MiB\n", b.Before, b.Before+b.Namespaces,
		b.Took.Round(time.Millisecond), (b.Took / time.Duration(b.Namespaces)).Round(time.Millisecond),
		(b.Supervisor / time.Duration(b.Namespaces)).Round(time.Millisecond), (b.APIServer / time.Duration(b.Namespaces)).Round(time.Millisecond), float64(b.Memory)/(1<<20))
	counts := map[string]int{}
	reads, writes, conflicts := 0, 0, 0
	for _, r := range b.Requests {
		key := r.Verb + " " + r.Resource
		if r.Code >= 400 {
			key += " " + strconv.Itoa(r.Code)
		}
		counts[key]++
		if r.Resource == "events" || r.Resource == "events.events.k8s.io" {
			continue
		}
		if r.Reads() {
			reads++
		} else {
			writes++
		}
		if r.Code == 409 {
			conflicts++
		}
	}
	fmt.Printf("requests %.1f each: reads %.1f, writes %.1f (without Events), conflicts %d\n", float64(reads+writes)/n, float64(reads)/n, float64(writes)/n, conflicts)
	print(counts, n, 0.05)
	fmt.Println("reconciles:")
	print(b.Reconciles, n, 0.05)
}

func print(counts map[string]int, n float64, least float64) {
	var keys []string
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	for _, k := range keys {
		if float64(counts[k])/n >= least {
			fmt.Printf("  %7.2f %s\n", float64(counts[k])/n, k)
		}
	}
}
