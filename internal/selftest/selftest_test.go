// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const me = "system:serviceaccount:plumbline-system:plumbline-selftest"

// fightWindow and fightReversals are those of the fight detector in pkg/specguard.
const (
	fightWindow    = 10 * time.Minute
	fightReversals = 3
)

// However often it is restarted, and whatever the period, the self-test never moves
// one knob so often that it looks like a fight.
func TestNoScheduleLooksLikeAFight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := time.Duration(rapid.Int64Range(int64(MinPeriod), int64(2*time.Hour)).Draw(t, "period"))
		now := time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "begin"), 0)
		reversals := map[string][]time.Time{}
		for range 20 {
			// A restart happens at any time; then the next slot is asked for anew.
			now = now.Add(time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(period)).Draw(t, "restart")))
			slot := SlotAt(now, period)
			now = slot.Begin
			reversals[slot.knob.name] = append(reversals[slot.knob.name], slot.Begin, slot.Begin.Add(period/2)) // there and back, late
		}
		for name, at := range reversals {
			for i := fightReversals - 1; i < len(at); i++ {
				if at[i].Sub(at[i-fightReversals+1]) < fightWindow {
					t.Fatalf("%s is moved %d times from %s to %s (period %s)", name, fightReversals, at[i-fightReversals+1], at[i], period)
				}
			}
		}
	})
}

func TestSlots(t *testing.T) {
	begin := time.Unix(0, 0).UTC()
	tests := map[string]struct {
		now  time.Time
		want time.Time
		knob string
	}{
		"at the begin of a slot":              {begin, begin, "minReadySeconds"},
		"in a slot, the next one":             {begin.Add(time.Second), begin.Add(MinPeriod), "progressDeadlineSeconds"},
		"the third one":                       {begin.Add(2 * MinPeriod), begin.Add(2 * MinPeriod), "revisionHistoryLimit"},
		"and from the begin, a nanosecond on": {begin.Add(2*MinPeriod + 1), begin.Add(3 * MinPeriod), "minReadySeconds"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := SlotAt(tc.now, MinPeriod)
			if !got.Begin.Equal(tc.want) || got.knob.name != tc.knob {
				t.Errorf("%s of %s, want %s of %s", got.knob.name, got.Begin, tc.knob, tc.want)
			}
		})
	}
}

// cluster is an API server with the self-test's object, and an assessor.
type cluster struct {
	spec map[string]any
	// stamps says whether the webhook stamps.
	stamps bool
	// assess makes the Baseline from the spec; nil: nobody assesses.
	assess func(spec map[string]any) *v1alpha1.Baseline
	// delay is how long the assessor takes, fail what reads and writes fail with.
	delay   time.Duration
	fail    error
	written time.Time
	patches []string
}

func newCluster() *cluster {
	c := &cluster{spec: map[string]any{"replicas": 0, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10}, stamps: true}
	c.assess = func(spec map[string]any) *v1alpha1.Baseline { return drifted(spec, me) }
	return c
}

// drifted is what an assessor says of a spec.
func drifted(spec map[string]any, by string) *v1alpha1.Baseline {
	b := &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{State: v1alpha1.StateInSync}}
	for _, k := range knobs {
		if value, ok := spec[k.name]; ok && value != any(int(k.rest)) {
			b.Status.State = v1alpha1.StateDrifted
			b.Status.Findings = append(b.Status.Findings, v1alpha1.Finding{Path: k.path(), Actor: v1alpha1.Actor{User: by}})
		}
	}
	return b
}

func (c *cluster) User(context.Context) (string, error) { return me, c.fail }

func (c *cluster) Object(context.Context) ([]byte, error) {
	if c.fail != nil {
		return nil, c.fail
	}
	object := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": c.spec}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	hash, err := canon.HashBody(raw, deployments)
	if err != nil || !c.stamps {
		return raw, err
	}
	object["metadata"] = metav1.ObjectMeta{Annotations: map[string]string{
		v1alpha1.AnnotationSpecHash: string(hash), v1alpha1.AnnotationWriter: me,
	}}
	return json.Marshal(object)
}

func (c *cluster) Patch(ctx context.Context, patch []byte) ([]byte, error) {
	if c.fail != nil {
		return nil, c.fail
	}
	var change struct {
		Spec map[string]int `json:"spec"`
	}
	if err := json.Unmarshal(patch, &change); err != nil {
		return nil, err
	}
	for name, value := range change.Spec {
		c.spec[name] = value
		if value == 0 {
			delete(c.spec, name) // as Go's omitempty in the API server has it
		}
		c.patches = append(c.patches, name+"="+strconv.Itoa(value))
	}
	c.written = time.Now()
	return c.Object(ctx)
}

func (c *cluster) Baseline(context.Context) (*v1alpha1.Baseline, error) {
	if c.fail != nil || c.assess == nil {
		return nil, c.fail
	}
	if time.Since(c.written) < c.delay {
		return &v1alpha1.Baseline{}, nil
	}
	return c.assess(c.spec), nil
}

func TestRounds(t *testing.T) {
	tests := map[string]struct {
		given   func(*cluster)
		want    Outcome
		patches []string
	}{
		"a drift that is found is put back": {
			given: func(c *cluster) { c.delay = 250 * time.Millisecond },
			want:  Outcome{ResultFound, 300 * time.Millisecond}, patches: []string{"progressDeadlineSeconds=601", "progressDeadlineSeconds=600"},
		},
		"a drift that nobody finds is put back as well": {
			given: func(c *cluster) { c.assess = nil },
			want:  Outcome{Result: ResultNotFound}, patches: []string{"progressDeadlineSeconds=601", "progressDeadlineSeconds=600"},
		},
		"another is named": {
			given: func(c *cluster) { c.assess = func(s map[string]any) *v1alpha1.Baseline { return drifted(s, "bob") } },
			want:  Outcome{ResultUnnamed, 0}, patches: []string{"progressDeadlineSeconds=601", "progressDeadlineSeconds=600"},
		},
		"what somebody left behind is put back first": {
			given: func(c *cluster) { c.spec["minReadySeconds"] = 7 },
			want:  Outcome{ResultFound, 0}, patches: []string{"minReadySeconds=0", "progressDeadlineSeconds=601", "progressDeadlineSeconds=600"},
		},
		"an API server that refuses is the self-test's own trouble": {
			given: func(c *cluster) { c.fail = errors.New("forbidden") },
			want:  Outcome{Result: ResultError},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				tc.given(c)
				runner := runnerOf(t, c)
				got := runner.Round(t.Context(), SlotAt(time.Unix(0, 0).Add(MinPeriod), MinPeriod), me)
				if got.Result == ResultUnnamed {
					got.After = got.After.Truncate(time.Second) // the first look sees it
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.patches, c.patches); diff != "" {
					t.Errorf("patches (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func runnerOf(t *testing.T, c Cluster) *Runner {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry(), time.Now(), MinPeriod)
	if err != nil {
		t.Fatal(err)
	}
	return &Runner{
		Cluster: c, Period: MinPeriod, Deadline: time.Minute, Metrics: metrics, Clock: clock.RealClock{}, Log: logr.Discard(),
	}
}

func TestRunTakesOneSlotAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		runner := runnerOf(t, c)
		ready := false
		runner.Ready = func() { ready = true }
		ctx, cancel := context.WithTimeout(t.Context(), 3*MinPeriod+time.Minute)
		defer cancel()
		if err := runner.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if !ready {
			t.Error("never ready")
		}
		found := testutil.ToFloat64(runner.Metrics.rounds.WithLabelValues(string(ResultFound)))
		if found < 3 || found > 4 { // the clock of synctest begins at a slot
			t.Errorf("%v rounds in three slots", found)
		}
		moved := map[string]int{}
		for _, patch := range c.patches {
			name, _, _ := strings.Cut(patch, "=")
			moved[name]++
		}
		if len(moved) != len(knobs) {
			t.Errorf("the knobs that were moved: %v", moved)
		}
		if last := testutil.ToFloat64(runner.Metrics.last); last == 0 {
			t.Error("the time of the last finding is not told")
		}
	})
}

func TestRunWaitsForAnAPIServerThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.fail = errors.New("connection refused")
		runner := runnerOf(t, c)
		runner.Ready = func() { t.Error("ready without having read anything") }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := runner.Run(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func TestBeingToldToStopPutsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.assess = nil
		runner := runnerOf(t, c)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		runner.Round(ctx, SlotAt(time.Unix(0, 0), MinPeriod), me)
		if diff := cmp.Diff([]string{"minReadySeconds=1", "minReadySeconds=0"}, c.patches); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestStamps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		runner := runnerOf(t, c)
		runner.Round(t.Context(), SlotAt(time.Unix(0, 0), MinPeriod), me)
		c.stamps = false
		runner.Round(t.Context(), SlotAt(time.Unix(1, 0), MinPeriod), me)
		for _, stamp := range []string{"hash", "writer"} {
			if got := testutil.ToFloat64(runner.Metrics.unstamped.WithLabelValues(stamp)); got != 1 {
				t.Errorf("%v of two writes counted without %s stamp, want 1", got, stamp)
			}
		}
	})
	if _, err := JudgeStamps([]byte("{"), me); err == nil {
		t.Error("an answer that is none was judged")
	}
}

func TestOptions(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"the defaults":                     {},
		"a period that looks like a fight": {[]string{"--selftest-period=1m", "--selftest-deadline=10s"}, "--selftest-period"},
		"a deadline beyond the period":     {[]string{"--selftest-deadline=4m"}, "--selftest-deadline"},
		"a namespace that is none":         {[]string{"--selftest-namespace=A"}, "--selftest-namespace"},
		"a name that is none":              {[]string{"--selftest-name=_"}, "--selftest-name"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var o Options
			fs := flag.NewFlagSet("t", flag.ContinueOnError)
			o.AddFlags(fs)
			if err := fs.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			err := o.Validate().ToAggregate()
			if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
