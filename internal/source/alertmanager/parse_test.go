// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// entry is an alert as Alertmanager 0.28.1 writes it.
func entry(fingerprint, status string) string {
	return `{"annotations":{},"endsAt":"2026-03-02T12:04:00.000Z","fingerprint":"` + fingerprint + `","receivers":[{"name":"web"}],` +
		`"startsAt":"2026-03-02T11:40:00.000Z","status":` + status + `,"updatedAt":"2026-03-02T12:00:00.250Z",` +
		`"generatorURL":"http://p/graph","labels":{"alertname":"HighErrorRate","namespace":"shop","deployment":"web"}}`
}

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func parsed(fingerprint string) Alert {
	return Alert{
		Alert:      effect.Alert{Fingerprint: fingerprint, Name: "HighErrorRate", StartTime: noon.Add(-20 * time.Minute)},
		Labels:     map[string]string{"alertname": "HighErrorRate", "namespace": "shop", "deployment": "web"},
		UpdateTime: noon.Add(250 * time.Millisecond), EndTime: noon.Add(4 * time.Minute),
	}
}

func TestParse(t *testing.T) {
	const active = `{"inhibitedBy":[],"mutedBy":[],"silencedBy":[],"state":"active"}`
	tests := map[string]struct {
		body  string
		want  []string // fingerprints
		fault source.Fault
	}{
		"no alert":           {"[]", nil, ""},
		"an alert":           {"[" + entry("f1", active) + "]", []string{"f1"}, ""},
		"an unprocessed one": {"[" + entry("f1", `{"inhibitedBy":[],"mutedBy":[],"silencedBy":[],"state":"unprocessed"}`) + "]", []string{"f1"}, ""},
		"defect 8: a silenced, an inhibited and a muted alert fire": {"[" + entry("f1", `{"inhibitedBy":[],"silencedBy":["s"],"state":"suppressed"}`) + "," +
			entry("f2", `{"inhibitedBy":["f1"],"silencedBy":[],"state":"suppressed"}`) + "," + entry("f3", `{"mutedBy":["offhours"],"state":"suppressed"}`) + "]", []string{"f1", "f2", "f3"}, ""},
		"defect 8: each of several alerts counts": {"[" + entry("f1", active) + "," + entry("f2", active) + "]", []string{"f1", "f2"}, ""},
		"an alert in a state of a later version":  {"[" + entry("f1", `{"state":"asleep"}`) + "]", []string{"f1"}, ""},
		"no list":                                 {"null", nil, source.Malformed},
		"an object":                               {`{"status":"success"}`, nil, source.Malformed},
		"a list that is cut":                      {"[" + entry("f1", active), nil, source.Malformed},
		"an alert without a fingerprint":          {"[" + entry("", active) + "]", nil, source.Malformed},
		"an alert whose fingerprint is too long":  {"[" + entry(strings.Repeat("f", 257), active) + "]", nil, source.Malformed},
		"an alert without its times":              {`[{"fingerprint":"f1","labels":{"alertname":"a"}}]`, nil, source.Malformed},
		"a time that is none":                     {`[{"fingerprint":"f1","startsAt":"yesterday"}]`, nil, source.Malformed},
		"labels that are no texts":                {`[{"fingerprint":"f1","labels":{"alertname":1}}]`, nil, source.Malformed},
		"500 alerts":                              {"[" + strings.Repeat(entry("f1", active)+",", 499) + entry("f1", active) + "]", repeated(500), ""},
		"501 alerts":                              {"[" + strings.Repeat(entry("f1", active)+",", 500) + entry("f1", active) + "]", nil, source.TooLarge},
		"more bytes than an answer may have":      {"[]" + strings.Repeat(" ", source.MaxAnswer), nil, source.TooLarge},
		"a list of lists":                         {strings.Repeat("[", 10_001), nil, source.Malformed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(source.NewAnswer(Name, 200, "application/json", []byte(tc.body)))
			if tc.fault != "" {
				if fault, _ := source.FaultOf(err); err == nil || fault != tc.fault {
					t.Errorf("the error is %v, want %s", err, tc.fault)
				}
				return
			}
			var want []Alert
			for _, f := range tc.want {
				want = append(want, parsed(f))
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, append([]Alert(nil), got.Alerts...)); diff != "" {
				t.Errorf("the alerts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAlertmanager025 reads an answer as https://github.com/prometheus/alertmanager/blob/v0.25.0/api/v2/openapi.yaml
// documents it: the status of an alert has no mutedBy, a receiver has its name alone, and times may have an offset.
func TestAlertmanager025(t *testing.T) {
	body := `[{"annotations":{"summary":"many errors"},"endsAt":"2026-03-02T13:04:00.000+01:00","fingerprint":"9e61a6ce37a1b3d2",
		"receivers":[{"name":"web.hook"}],"startsAt":"2026-03-02T12:40:00.000+01:00",
		"status":{"inhibitedBy":[],"silencedBy":["b8b5d4b0-7ff6-4fba-9a0e-7d7a9a0e8e66"],"state":"suppressed"},"updatedAt":"2026-03-02T13:00:00.250+01:00",
		"labels":{"alertname":"HighErrorRate","deployment":"web","namespace":"shop"}}]`
	got, err := Parse(source.NewAnswer(Name, 200, "application/json", []byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Alert{parsed("9e61a6ce37a1b3d2")}, got.Alerts); diff != "" {
		t.Errorf("the alerts (-want +got):\n%s", diff)
	}
}

func repeated(n int) (fingerprints []string) {
	for range n {
		fingerprints = append(fingerprints, "f1")
	}
	return fingerprints
}

func TestAWatchdogProvesThatAlertsArriveWhileItsSenderLives(t *testing.T) {
	received := func(ago, life time.Duration) Alert {
		return Alert{UpdateTime: noon.Add(-ago), EndTime: noon.Add(life - ago)}
	}
	tests := map[string]struct {
		answer Answer
		want   bool
	}{
		"no watchdog":         {Answer{Time: noon}, false},
		"it was received now": {Answer{[]Alert{received(0, 4*time.Minute)}, noon}, true},
		"it was received after the second of the answer":       {Answer{[]Alert{received(-900*time.Millisecond, 4*time.Minute)}, noon}, true},
		"it was received in the first half of its life":        {Answer{[]Alert{received(119*time.Second, 4*time.Minute)}, noon}, true},
		"its sender died, and it is still there":               {Answer{[]Alert{received(2*time.Minute, 4*time.Minute)}, noon}, false},
		"its sender died, and it stays for long":               {Answer{[]Alert{received(3*time.Minute, 20*time.Minute)}, noon}, false},
		"one of two senders lives":                             {Answer{[]Alert{received(3*time.Minute, 4*time.Minute), received(time.Second, 4*time.Minute)}, noon}, true},
		"Alertmanager does not tell the time":                  {Answer{[]Alert{received(0, 4*time.Minute)}, time.Time{}}, false},
		"it was to end before it was received, as a bad clock": {Answer{[]Alert{received(time.Second, -time.Minute)}, noon}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.answer.ProvesArrival(); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"[]", "null", `[{}]`, "[" + entry("f1", `{"state":"active"}`) + "]", `[{"startsAt":"0001-01-01T00:00:00Z"}]`, "<html>", `{"data":[]}`} {
		f.Add(200, "application/json", []byte(seed))
	}
	f.Add(302, "text/html", []byte("<html>"))
	f.Fuzz(func(t *testing.T, status int, contentType string, body []byte) {
		got, err := Parse(source.NewAnswer(Name, status, contentType, body))
		if err != nil {
			if fault, message := source.FaultOf(err); fault == source.Unreachable || message == "" || len(message) > 256 {
				t.Errorf("got %s, %q", fault, message)
			}
			return
		}
		if status != 200 || len(got.Alerts) > MaxAlerts {
			t.Errorf("status %d has %d alerts", status, len(got.Alerts))
		}
		for _, a := range got.Alerts {
			if a.Fingerprint == "" || a.StartTime.IsZero() || a.EndTime.IsZero() || len(fmt.Sprint(a.Name)) > 256 {
				t.Errorf("an alert lacks something: %v", a)
			}
		}
	})
}
