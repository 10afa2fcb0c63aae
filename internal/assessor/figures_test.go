// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/test/metricspage"
)

// What is registered does not depend on a cluster that answers.
func TestTheMetricsPageIsThatOfTheAssessor(t *testing.T) {
	registry := telemetry.NewRegistry("assessor")
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	if err := telemetry.CountRequests(config, registry); err != nil {
		t.Fatal(err)
	}
	setup := Setup{Config: config, Namespace: "plumbline-system", Registry: registry, Log: logr.Discard(), Clock: clock.RealClock{}}
	if err := setup.complete(); err != nil {
		t.Fatal(err)
	}
	mgr, err := newManager(setup)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newParts(mgr, setup); err != nil {
		t.Fatal(err)
	}
	metricspage.Check(t, "assessor", registry)
}
