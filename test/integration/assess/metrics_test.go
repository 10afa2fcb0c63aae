// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// figures are an assessor's samples, by family and labels: "name{a=b,c=d}". Of a
// histogram the count and the sum are given, as name_count and name_sum.
func (p *process) figures() (map[string]float64, error) {
	families, err := p.registry.Gather()
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := func(suffix string) string { return f.GetName() + suffix + "{" + strings.Join(labels, ",") + "}" }
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				all[name("")] = m.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				all[name("")] = m.GetGauge().GetValue()
			case dto.MetricType_HISTOGRAM:
				all[name("_count")] = float64(m.GetHistogram().GetSampleCount())
				all[name("_sum")] = m.GetHistogram().GetSampleSum()
			default:
				return nil, fmt.Errorf("%s is of type %s", f.GetName(), f.GetType())
			}
		}
	}
	return all, nil
}

// shows waits until the samples that begin with a text are exactly these.
func (w *world) shows(p *process, prefix string, want map[string]float64) {
	w.t.Helper()
	w.Eventually("the metrics "+prefix+" are right", func() error {
		all, err := p.figures()
		if err != nil {
			return err
		}
		maps.DeleteFunc(all, func(name string, _ float64) bool { return !strings.HasPrefix(name, prefix) })
		if !maps.Equal(all, want) {
			return fmt.Errorf("they are %v, want %v", all, want)
		}
		return nil
	})
}

// within waits until a sample lies between two bounds.
func (w *world) within(p *process, name string, low, high time.Duration) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("%s is between %s and %s", name, low, high), func() error {
		all, err := p.figures()
		if err != nil {
			return err
		}
		got, ok := all[name]
		if !ok || got < low.Seconds() || got > high.Seconds() {
			return fmt.Errorf("it is %v (%t)", got, ok)
		}
		return nil
	})
}

// TestTheMetricsTellTheStory: a person changes an image and takes it back half
// an hour later, another scales and is known by the webhook's record, somebody
// unknown scales too, and an object disappears.
func TestTheMetricsTellTheStory(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	c := &laterClock{}
	r := startRedis(t)
	// Each figure is exact, so the record has to be there in time.
	p := start(t, withClock(c), r.reader(), withGrace(500*time.Millisecond))
	w.shows(p, "plumbline_assessor_admission_records_up", map[string]float64{"plumbline_assessor_admission_records_up{}": 1})
	w.UnderGuard()
	for _, name := range []string{"image", "scaled", "unknown", "gone"} {
		w.Deploy(ci, name)
		w.UntilIs(name, "InSync")
	}
	const kind = "kind=Deployment.apps"
	w.shows(p, "plumbline_drift_objects", map[string]float64{"plumbline_drift_objects{" + kind + ",severity=,state=InSync}": 4})
	for _, quiet := range []string{"plumbline_drift_findings_total", "plumbline_drift_attributions_total", "plumbline_drift_detection_seconds", "plumbline_drift_oldest_seconds"} {
		w.shows(p, quiet, map[string]float64{})
	}
	w.shows(p, "plumbline_drift_age_seconds", map[string]float64{"plumbline_drift_age_seconds_count{}": 0, "plumbline_drift_age_seconds_sum{}": 0})
	w.shows(p, "plumbline_assessor_leader", map[string]float64{"plumbline_assessor_leader{}": 1})
	before, err := p.figures()
	w.Must(err)

	w.SetImage(alice, "image", "registry.example/shop:2")
	w.UntilOn(poll.Detection, "image", "it drifts", isState(v1alpha1.StateDrifted))
	r.store(recordOfScale(w.Live("scaled"), alice, 5))
	w.Scale(alice, "scaled", 5)
	w.UntilIs("scaled", "Drifted: Changed /spec/replicas by alice (Untrusted, Admission)")
	w.Scale(bob, "unknown", 7)
	w.Until("unknown", "it drifts", isState(v1alpha1.StateDrifted))
	w.Delete(bob, "gone")
	w.Until("gone", "it is missing", isState(v1alpha1.StateMissing))
	w.shows(p, "plumbline_drift_findings_total", map[string]float64{
		"plumbline_drift_findings_total{actor_class=Untrusted,class=ImageVersion}": 1,
		"plumbline_drift_findings_total{actor_class=Untrusted,class=Scale}":        1,
		"plumbline_drift_findings_total{actor_class=Unknown,class=Scale}":          1,
		"plumbline_drift_findings_total{actor_class=Unknown,class=ObjectMissing}":  1,
	})
	w.shows(p, "plumbline_drift_attributions_total", map[string]float64{
		"plumbline_drift_attributions_total{source=WriterStamp}":   1,
		"plumbline_drift_attributions_total{source=Admission}":     1,
		"plumbline_drift_attributions_total{source=ManagedFields}": 1,
		"plumbline_drift_attributions_total{source=None}":          1,
	})
	states := map[string]float64{}
	for _, name := range []string{"image", "scaled", "unknown", "gone"} {
		b, err := w.Baseline(name)
		w.Must(err)
		states[fmt.Sprintf("plumbline_drift_objects{%s,severity=%s,state=%s}", kind, b.Status.Severity.Level, b.Status.State)]++
	}
	w.shows(p, "plumbline_drift_objects", states)

	// Other tests have left Baselines behind, which this figure counts too.
	const unattributed = "plumbline_drift_unattributed_objects{}"
	w.shows(p, unattributed, map[string]float64{unattributed: before[unattributed] + 2})

	// Four drifts were seen by the watch; one of them is explained by a record too.
	all, err := p.figures()
	w.Must(err)
	for name, want := range map[string]float64{
		"plumbline_drift_detection_seconds_count{from=watch}":     4,
		"plumbline_drift_detection_seconds_count{from=admission}": 1,
	} {
		if all[name] != want {
			t.Errorf("%s is %v, want %v", name, all[name], want)
		}
	}
	w.within(p, "plumbline_drift_detection_seconds_sum{from=watch}", time.Nanosecond, 4*patience)
	w.within(p, "plumbline_drift_detection_seconds_sum{from=admission}", time.Nanosecond, patience)

	c.forward(30 * time.Minute)
	w.within(p, "plumbline_drift_oldest_seconds{"+kind+"}", 30*time.Minute, 30*time.Minute+5*patience)
	w.within(p, "plumbline_assessor_last_assessed_seconds{}", 30*time.Minute, 30*time.Minute+5*patience)
	b, err := w.Baseline("image")
	w.Must(err)
	w.within(p, "plumbline_drift_open_age_seconds{severity="+string(b.Status.Severity.Level)+"}", 30*time.Minute, 24*time.Hour)
	w.SetImage(alice, "image", "registry.example/shop:1")
	w.UntilIs("image", "InSync")
	w.shows(p, "plumbline_drift_age_seconds_count", map[string]float64{"plumbline_drift_age_seconds_count{}": 1})
	w.within(p, "plumbline_drift_age_seconds_sum{}", 30*time.Minute-time.Second, 30*time.Minute+5*patience)
	w.within(p, "plumbline_assessor_last_assessed_seconds{}", 0, patience)
	// The figures of what is explained or resolved do not count twice.
	w.within(p, "plumbline_drift_findings_total{actor_class=Untrusted,class=ImageVersion}", time.Second, time.Second)

	r.Kill()
	w.shows(p, "plumbline_assessor_admission_records_up", map[string]float64{"plumbline_assessor_admission_records_up{}": 0})
}

// TestTheCountersOfFaults: each counts what it is named after, and nothing else
// happened in a story without faults.
func TestTheCountersOfFaults(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	counters := []string{
		"plumbline_assessor_queue_overflow_total", "plumbline_assessor_conflicts_total", "plumbline_assessor_completed_total",
		"plumbline_assessor_trim_failures_total", "plumbline_assessor_admission_record_gaps_total",
	}
	for _, name := range counters {
		w.shows(p, name, map[string]float64{name + "{}": 0})
	}
	w.shows(p, "plumbline_assessor_watch_errors_total", map[string]float64{})
	w.shows(p, "plumbline_assessor_admission_records_up", map[string]float64{}) // nobody reads any

	// A decision whose spec could not be written is completed by the next one.
	reached := p.dieAt("write the spec")
	w.SetImage(ci, "web", "registry.example/shop:2")
	w.await("the assessor reaches the write", reached)
	p.Halt(t)
	p = start(t)
	w.Until("web", "the image is authorized", func(b *v1alpha1.Baseline) error {
		if guarded.Authorized(b) != 2 {
			return fmt.Errorf("authorized is %+v", b.Spec.Authorized)
		}
		return nil
	})
	w.shows(p, "plumbline_assessor_completed_total", map[string]float64{"plumbline_assessor_completed_total{}": 1})
	all, err := p.figures()
	w.Must(err)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(name, "plumbline_") && strings.Contains(name, w.namespace) {
			t.Errorf("%s names an object or its namespace", name)
		}
	}
}
