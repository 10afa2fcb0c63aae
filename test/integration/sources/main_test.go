// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sources

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/plumbline-dev/plumbline/internal/effectiveness"
	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/internal/source/alertmanager"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/test/harness/monitoring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

var web = effect.Target{Namespace: "shop", Kind: "Deployment", Name: "web", Pods: []string{"web-5d4f-abcde"}}

// newSources returns those of an installation without any.
func newSources(t *testing.T) *effectiveness.Sources {
	t.Helper()
	figures, err := effectiveness.NewFigures(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return &effectiveness.Sources{Figures: figures, Log: logr.Discard()}
}

// alertsOf returns the sources of an installation with this Alertmanager, and with a watchdog.
func alertsOf(t *testing.T, s *monitoring.Server) *effectiveness.Sources {
	t.Helper()
	client, err := alertmanager.New(source.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	sources := newSources(t)
	sources.Alerts, sources.Watchdog = client, "Watchdog"
	return sources
}
