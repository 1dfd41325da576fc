package server

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// imageSettingsInterval is the time between two checks of the settings if the source is not followed.
const imageSettingsInterval = 10 * time.Second

// configured is a source that may have settings in files, which it reads again for each image.
type configured interface {
	// CheckSettings returns a function that reads the settings; nil if there are none. Its error says why the current files
	// are not used, so that the last valid settings stay in force.
	CheckSettings() func() error
}

// imageSettings reports settings that become invalid while the server runs.
type imageSettings struct {
	check    func() error
	interval time.Duration
	logger   *slog.Logger
	valid    prometheus.Gauge
	// reported is the text of the last logged problem; empty if the settings were valid.
	reported string
}

// newImageSettings returns nil if the source has no settings.
func newImageSettings(config *Config, m *metrics) *imageSettings {
	source, ok := config.Source.(configured)
	if !ok || source.CheckSettings() == nil {
		return nil
	}
	return &imageSettings{
		check: source.CheckSettings(), interval: cmp.Or(config.ReloadInterval, imageSettingsInterval), logger: config.Logger,
		valid: family{promauto.With(m.registry)}.gauge("image_settings_valid",
			"1 if the files with settings for image registries are valid, 0 if the last valid ones stay in force. Absent without such files."),
	}
}

// watch checks the settings until ctx ends.
func (s *imageSettings) watch(ctx context.Context) {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for {
		s.report(ctx, s.check())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// report shows the result of a check in the metric, and logs it if it has changed.
func (s *imageSettings) report(ctx context.Context, err error) {
	problem := ""
	if err == nil {
		s.valid.Set(1)
	} else {
		problem = err.Error()
		s.valid.Set(0)
	}
	if problem == s.reported {
		return
	}
	s.reported = problem
	if err == nil {
		s.logger.InfoContext(ctx, "The settings for image registries are valid again")
		return
	}
	s.logger.ErrorContext(ctx, "Cannot use the settings for image registries, the last valid ones stay in force", "error", err)
}
