// Command server is the part of Prometheus that scrapes targets and answers queries, for tests. It links the packages of
// Prometheus that promtool links too, so it compiles nearly nothing more. The whole server would compile thousands of files
// for service discovery and remote storage.
//
// It scrapes the static targets of the configuration that it is given, until it is killed. GET /query?query=EXPRESSION
// answers with the vector of an instant query, in the JSON of Prometheus, or with an error as text.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
)

func main() {
	file := flag.String("config", "", "file with the configuration of Prometheus")
	data := flag.String("data", "", "folder of the database")
	address := flag.String("address", "", "host and port of the queries")
	flag.Parse()
	if err := run(*file, *data, *address); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// run scrapes and answers until the process ends.
func run(file, data, address string) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	configuration, err := config.LoadFile(file, false, logger)
	if err != nil {
		return err
	}
	db, err := tsdb.Open(data, logger, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return err
	}
	if err := scrapeTargets(configuration, db, logger); err != nil {
		return err
	}
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: logger, MaxSamples: 1 << 20, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: parser.NewParser(parser.Options{}),
	})
	http.HandleFunc("GET /query", func(w http.ResponseWriter, r *http.Request) { answer(w, r, engine, db) })
	return http.ListenAndServe(address, nil)
}

// scrapeTargets starts to scrape the static targets into the database.
func scrapeTargets(configuration *config.Config, db *tsdb.DB, logger *slog.Logger) error {
	options := &scrape.Options{DiscoveryReloadOnStartup: true, DiscoveryReloadInterval: model.Duration(time.Second)}
	manager, err := scrape.NewManager(options, logger, nil, db, nil, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	if err := manager.ApplyConfig(configuration); err != nil {
		return err
	}
	jobs, err := configuration.GetScrapeConfigs()
	if err != nil {
		return err
	}
	targets := map[string][]*targetgroup.Group{}
	for _, job := range jobs {
		for _, source := range job.ServiceDiscoveryConfigs {
			static, ok := source.(discovery.StaticConfig)
			if !ok {
				return fmt.Errorf("job %s discovers targets with %s: only static targets are scraped", job.JobName, source.Name())
			}
			targets[job.JobName] = append(targets[job.JobName], static...)
		}
	}
	sets := make(chan map[string][]*targetgroup.Group, 1)
	sets <- targets
	go func() {
		if err := manager.Run(sets); err != nil {
			logger.Error("scraping", "err", err)
		}
	}()
	return nil
}

// answer writes the result of the query in the request.
func answer(w http.ResponseWriter, r *http.Request, engine *promql.Engine, db *tsdb.DB) {
	query, err := engine.NewInstantQuery(r.Context(), db, nil, r.FormValue("query"), time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	defer query.Close()
	vector, err := query.Exec(r.Context()).Vector()
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(vector); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
