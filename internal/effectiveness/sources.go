// SPDX-License-Identifier: Apache-2.0

package effectiveness

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/internal/source/alertmanager"
	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// AlertSource has the alerts that fire.
type AlertSource interface {
	Firing(ctx context.Context, matchers []string) (alertmanager.Answer, error)
}

// MetricSource has the numbers of queries.
type MetricSource interface {
	Query(ctx context.Context, promQL string) (float64, error)
	QueryRange(ctx context.Context, promQL string, window effect.Span) ([]prometheus.Series, error)
}

// Sources are those of the installation. They are safe for concurrent use.
type Sources struct {
	// Alerts and Metrics are nil where the installation names no such source.
	Alerts  AlertSource
	Metrics MetricSource
	// Watchdog is the name of an alert that always fires; empty for none.
	Watchdog string
	Figures  *Figures
	Log      logr.Logger
}

// Question is what is asked about one write.
type Question struct {
	// Assessment is the name of the assessment, for the log.
	Assessment string
	Target     effect.Target
	// Matchers select alerts; without one, the alerts of the namespace that are about the target.
	Matchers []effect.Matcher
	// Queries are the metrics; without one, the component is not configured.
	Queries []effect.Query
	// Before are the alerts that fired before the write.
	Before []effect.Alert
	// DriftTime, WrittenTime and StabilizedTime are those of the write, by the API server, as is Now.
	DriftTime, WrittenTime, StabilizedTime, Now time.Time
}

// ask counts a request of a source, and logs what the message for people leaves out. It returns why there is
// no answer; nil if there is one.
func (s *Sources) ask(q *Question, name string, request func() error) *source.Error {
	err := request()
	if err == nil {
		s.Figures.answered(name)
		return nil
	}
	fault, message := source.FaultOf(err)
	s.Figures.failed(name, fault)
	s.Log.Info("a source has no answer that counts", "source", name, "assessment", q.Assessment, "fault", string(fault), "error", err.Error())
	return &source.Error{Fault: fault, Message: message, Cause: err}
}
