// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// markKey authenticates marks in tests.
var markKey = []byte("0123456789abcdef0123456789abcdef")

// D26 of the review of remediation: a key in Redis silenced each channel, without a line
// in the log. The id of an event is public: the writer of Redis marks a failure as told
// before the failure happens.
func TestTheWriterOfRedisSilencesNoAlarm(t *testing.T) {
	marks := map[string]func(s *RedisSeen, channel, id string) string{
		"the mark of earlier releases": func(*RedisSeen, string, string) string { return "1" },
		"an empty mark":                func(*RedisSeen, string, string) string { return "" },
		"a mark under another key": func(s *RedisSeen, c, id string) string {
			return NewRedisSeen(s.client, s.prefix, []byte("guess")).mark(c, id)
		},
		"a mark under no key":             func(s *RedisSeen, c, id string) string { return NewRedisSeen(s.client, s.prefix, nil).mark(c, id) },
		"the mark of another event":       func(s *RedisSeen, c, _ string) string { return s.mark(c, "evt_1") },
		"the mark of the event elsewhere": func(s *RedisSeen, _, id string) string { return s.mark("nightly/other", id) },
	}
	for name, forge := range marks {
		t.Run(name, func(t *testing.T) {
			w := silence(t, markKey)
			w.marked(forge, notify.PlanFailed, notify.PlanEscalated, notify.PlanCompleted)
			w.arrive(map[string]float64{"unproven": 3, "urgent": 0})
		})
	}
}

// A mark that Plumbline itself left keeps no person from an urgent event: Plumbline sends
// the event again, and says why.
func TestAGenuineMarkSilencesNoUrgentEvent(t *testing.T) {
	w := silence(t, markKey)
	w.marked((*RedisSeen).mark, notify.PlanFailed, notify.PlanEscalated)
	w.arrive(map[string]float64{"unproven": 0, "urgent": 2})
}

func TestWithoutAKeyNoMarkKeepsAnEventFromBeingSent(t *testing.T) {
	w := silence(t, nil)
	w.marked((*RedisSeen).mark, notify.PlanCreated, notify.PlanStarted, notify.PlanCompleted)
	w.arrive(map[string]float64{"unproven": 3, "urgent": 0})
}

// silenced is a notifier whose Redis others write.
type silenced struct {
	*world
	r    *receiver
	seen *RedisSeen
	want []string
}

func silence(t *testing.T, key []byte) *silenced {
	t.Helper()
	client, r := startRedis(t).Client(), receive(t)
	t.Cleanup(func() { _ = client.Close() })
	s := &silenced{r: r, seen: NewRedisSeen(client, "plumbline", key)}
	policy := policyWith(hook("hook"))
	policy.Spec.Notifications.OnPlanCreated, policy.Spec.Notifications.OnStarted = v1alpha1.PlanCreatedEnabled, v1alpha1.Enabled
	s.world = newWorld(t, func(c *Config) {
		trusting(r)(c)
		c.Seen = s.seen
	}, secret(r.URL), policy)
	return s
}

// marked has events happen whose marks are in Redis before.
func (s *silenced) marked(forge func(s *RedisSeen, channel, id string) string, kinds ...notify.EventType) {
	s.t.Helper()
	for _, kind := range kinds {
		e := event(kind, "1")
		name, mark := s.seen.name("nightly/hook", e.ID()), forge(s.seen, "nightly/hook", e.ID())
		if err := s.seen.client.Set(s.t.Context(), name, mark, Remembered).Err(); err != nil {
			s.t.Fatal(err)
		}
		s.Notify(e)
		s.want = append(s.want, e.ID())
	}
	s.Close(s.t.Context())
}

// arrive checks that each event arrived, and that each doubt was counted and logged.
func (s *silenced) arrive(doubts map[string]float64) {
	s.t.Helper()
	if diff := cmp.Diff(s.want, s.r.ids()); diff != "" {
		s.t.Errorf("arrived (-want +got):\n%s", diff)
	}
	for reason, want := range doubts {
		if got := testutil.ToFloat64(s.metrics.doubts.WithLabelValues("webhook", reason)); got != want {
			s.t.Errorf("%v doubts are %s, want %v", got, reason, want)
		}
	}
	if n := strings.Count(s.said(), "notification.seen.doubted"); n != len(s.want) {
		s.t.Errorf("%d doubts of %d are in the log:\n%s", n, len(s.want), s.said())
	}
}
