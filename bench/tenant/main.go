// Command tenant measures what a user with the ClusterRole edit in one namespace can do to the
// supervisor: whether it remains the leader, how much memory it uses, and how long an installation
// in another namespace takes.
//
//	go run ./bench/tenant [--objects 900] [--size 1048576] [--duration 5m] [--kinds Deployment,Pod]
//
// The control plane is real; kwok simulates its nodes and pods. It needs no root. With 900 objects
// of 1 MiB it needs 8 GiB of memory and 16 GiB of disk. It exits with status 1 if the heap grows by
// 30 MiB or more, or the supervisor loses its Lease.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/chandlery/chandlery/test/attack"
	"github.com/chandlery/chandlery/test/cli"
	"github.com/chandlery/chandlery/test/programs"
)

func main() { cli.Run("bench", start) }

func parse(args []string, output io.Writer) (attack.Options, error) {
	o := attack.Options{Root: ".", Settle: 30 * time.Second}
	var kinds string
	flags := flag.NewFlagSet("bench/tenant measures what a user with edit in one namespace can do to a supervisor", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.IntVar(&o.Objects, "objects", 900, "number of large objects of each kind")
	flags.IntVar(&o.Size, "size", 1<<20, "size of each in bytes")
	flags.DurationVar(&o.Duration, "duration", 5*time.Minute, "total time of changes, divided among the kinds; longer while installations run")
	flags.IntVar(&o.Installs, "installs", 3, "timed installations before the attack and, for each kind, with the objects and during changes")
	var rate float64
	flags.Float64Var(&rate, "rate", 3, "objects that the tenant changes per second (900 in five minutes is 3)")
	flags.BoolVar(&o.Together, "together", false, "have the objects of all kinds at the same time, which takes memory for all of them in etcd and the API server")
	flags.StringVar(&kinds, "kinds", strings.Join(attack.Kinds(), ","), "kinds of the objects")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.Kinds, o.Rate = strings.Split(kinds, ","), float32(rate)
	if o.Objects < 1 || o.Size < 1 || o.Installs < 1 || o.Duration <= 0 || o.Rate <= 0 {
		return o, fmt.Errorf("--objects %d, --size %d, --installs %d, --duration %s, --rate %v: more than 0 is needed", o.Objects, o.Size, o.Installs, o.Duration, o.Rate)
	}
	return o, nil
}

// start builds the programs, measures and prints.
func start(ctx context.Context, args []string) error {
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	if o.Dir, err = os.MkdirTemp("", "chandlery-bench-"); err != nil {
		return fmt.Errorf("making a folder for programs and logs: %w", err)
	}
	if err := programs.Build(ctx, o.Dir, "./cmd/registry", "./cmd/supervisor"); err != nil {
		return errors.Join(err, os.RemoveAll(o.Dir))
	}
	result, err := attack.Run(ctx, o)
	if err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, o.Dir)
	}
	fmt.Print(report(o, result))
	return errors.Join(result.Check(), os.RemoveAll(o.Dir))
}

func report(o attack.Options, r *attack.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d objects of %.2f MiB of each kind; %d cores; %s; one supervisor.\n\n", o.Objects, mebi(int64(o.Size)), runtime.NumCPU(), runtime.Version())
	b.WriteString("| Objects of kind | Live heap before | With the objects | Peak | After a restart | Peak of the restart | Leads after a restart | Installation in another namespace | During changes |\n|---|---|---|---|---|---|---|---|---|\n")
	fmt.Fprintf(&b, "| none | | | | | | | %s | |\n", attack.Median(r.Installs))
	for _, s := range r.Stages {
		fmt.Fprintf(&b, "| %s | %.1f MiB | %.1f MiB | %.0f MiB | %.1f MiB | %.0f MiB | %s | %s | %s |\n", strings.Join(s.Kinds, ", "), mebi(s.Before),
			mebi(s.Filled), mebi(s.FilledPeak), mebi(s.Restarted), mebi(s.RestartedPeak),
			s.Ready.Round(time.Millisecond), attack.Median(s.Present), attack.Median(s.Installs))
	}
	b.WriteString("\nThe heap is the least after garbage collections. The peak is the most memory that was resident since the start (VmHWM).\n")
	running, restarted := r.Growth()
	fmt.Fprintf(&b, "\nGrowth of all kinds together: %.1f MiB, after a restart %.1f MiB (limit: %.0f MiB).\n", mebi(running), mebi(restarted), mebi(attack.MaxGrowth))
	fmt.Fprintf(&b, "Leads lost to the tenant: %d (limit: 0).\n", r.Lost)
	return b.String()
}

func mebi(bytes int64) float64 { return float64(bytes) / (1 << 20) }
