// SPDX-License-Identifier: Apache-2.0

package traefik_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/internal/connector/traefik"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// answer is what the API says of a service that was rendered.
func answer(t interface{ Fatal(...any) }, ports ...traefik.Port) []byte {
	rendered, err := traefik.Render(ports)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		HTTP struct{ Services map[string]map[string]any }
	}
	if err := json.Unmarshal(rendered, &document); err != nil {
		t.Fatal(err)
	}
	said := document.HTTP.Services[ports[0].Name()]
	said["status"] = "enabled"
	out, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What was rendered is read back, and is the split of its own sequence and weights alone.
func TestASplitIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) traffic.Split {
			return split(rapid.Uint64Range(1, 3).Draw(t, name+" sequence"), traffic.Weight(rapid.IntRange(0, 3).Draw(t, name+" weight")))
		}
		told, other := draw("told"), draw("other")
		p := port(web, &told)
		if rapid.Bool().Draw(t, "no endpoints") {
			delete(p.Arms, "canary")
		}
		state, err := traefik.ReadService(web, answer(t, p))
		if err != nil {
			t.Fatal(err)
		}
		if !state.Divides(told) {
			t.Fatalf("read back is %+v, told was %+v", state, told.Shares)
		}
		if same := told.Sequence == other.Sequence && cmp.Equal(told.Shares, other.Shares); state.Divides(other) != same {
			t.Fatalf("%+v is %+v: %t", state, other.Shares, !same)
		}
	})
	undivided, err := traefik.ReadService(web, answer(t, port(web, nil)))
	if err != nil || undivided.Sequence != 0 || undivided.Divides(split(1, 0)) {
		t.Errorf("of a Service without a split %+v (%v)", undivided, err)
	}
}

func TestAnswersThatAreNoProof(t *testing.T) {
	for name, tc := range map[string]struct{ said, want string }{
		"HTML":                    {"<html>", "invalid character"},
		"a service in error":      {`{"status":"disabled","error":["no child"],"weighted":{}}`, "no child"},
		"no weights":              {`{"status":"enabled"}`, "has no weights"},
		"weights and no marker":   {`{"status":"enabled","weighted":{"services":[{"name":"plb_shop_web_80_canary","weight":1}]}}`, "no sequence"},
		"a child of another":      {`{"status":"enabled","weighted":{"services":[{"name":"other","weight":1}]}}`, "which Plumbline does not make"},
		"two sequences":           {`{"status":"enabled","weighted":{"services":[{"name":"plb_shop_web_80__1"},{"name":"plb_shop_web_80__2"}]}}`, "once more"},
		"a child twice":           {`{"status":"enabled","weighted":{"services":[{"name":"plb_shop_web_80__1"},{"name":"plb_shop_web_80_a"},{"name":"plb_shop_web_80_a_failover"}]}}`, "once more"},
		"weights that are words":  {`{"status":"enabled","weighted":{"services":[{"name":"plb_shop_web_80_a","weight":"1"}]}}`, "cannot unmarshal"},
		"a sequence that is none": {`{"status":"enabled","weighted":{"services":[{"name":"plb_shop_web_80__x"}]}}`, "invalid syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			if state, err := traefik.ReadService(web, []byte(tc.said)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("read is %+v with error %v, want %q", state, err, tc.want)
			}
		})
	}
}

func FuzzReadService(f *testing.F) {
	s := split(7, 1_000)
	f.Add(answer(f, port(web, &s)))
	f.Add([]byte(`{"status":"enabled","weighted":{"services":[{"name":"plb_shop_web_80__1"}]}}`))
	f.Fuzz(func(t *testing.T, said []byte) {
		state, err := traefik.ReadService(web, said)
		if err == nil && len(state.Weights) > 0 && state.Sequence == 0 {
			t.Errorf("%q has weights without a sequence", said)
		}
	})
}

func TestWhatIsKnownOfASplit(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	told := &traefik.Told{Split: split(7, 1_000), At: at, Settle: time.Minute}
	state := func(sequence uint64, canary traffic.Weight) traefik.State {
		return traefik.State{Sequence: sequence, Weights: map[string]traffic.Weight{"stable": traffic.Total - canary, "canary": canary}}
	}
	asked := func(name string, states ...traefik.State) traefik.Program {
		return traefik.Program{Name: name, HasAPI: true, States: states}
	}
	ok, arms := asked("a", state(7, 1_000)), []traffic.Arm{{Variation: "stable"}, {Variation: "canary"}}
	late := func(name string, has uint64, why string) []traffic.OutOfSync {
		return []traffic.OutOfSync{{Name: name, Has: has, Why: why, Since: at}}
	}
	for name, tc := range map[string]struct {
		programs []traefik.Program
		want     traffic.Observation
	}{
		"all have it":             {[]traefik.Program{ok, asked("b", state(7, 1_000), state(7, 1_000))}, traffic.Observation{Sequence: 7, Knowledge: traffic.Proven, Wanted: 2, Acknowledged: 2}},
		"none is there":           {nil, traffic.Observation{Knowledge: traffic.NoProxies}},
		"one is behind":           {[]traefik.Program{ok, asked("b", state(6, 0))}, traffic.Observation{Sequence: 6, Knowledge: traffic.Unknown, Wanted: 2, Acknowledged: 1, OutOfSync: late("b", 6, "it has another split, or is without one")}},
		"one port is behind":      {[]traefik.Program{asked("a", state(7, 1_000), traefik.State{})}, traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1, OutOfSync: late("a", 0, "it has another split, or is without one")}},
		"one was edited":          {[]traefik.Program{ok, asked("b", state(7, 0))}, traffic.Observation{Knowledge: traffic.Contradicted, Wanted: 2, Acknowledged: 1, OutOfSync: late("b", 0, "it has other weights under the sequence")}},
		"one is ahead":            {[]traefik.Program{asked("b", state(9, 0)), ok}, traffic.Observation{Knowledge: traffic.Contradicted, Wanted: 2, Acknowledged: 1, Ahead: 9, OutOfSync: late("b", 9, "it has a split of a later sequence")}},
		"one does not answer":     {[]traefik.Program{ok, {Name: "b", HasAPI: true, Err: errors.New("no answer")}}, traffic.Observation{Knowledge: traffic.Unknown, Wanted: 2, Acknowledged: 1, OutOfSync: late("b", 0, "no answer")}},
		"one without API fetched": {[]traefik.Program{ok, {Name: "b", Fetched: true}}, traffic.Observation{Sequence: 7, Knowledge: traffic.Accepted, SettledAt: at.Add(time.Minute), Wanted: 2, Acknowledged: 2}},
		"none has fetched":        {[]traefik.Program{{Name: "b"}}, traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1, OutOfSync: late("b", 0, "no Traefik has fetched the configuration yet")}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.Arms = arms
			if d := cmp.Diff(tc.want, traefik.Observe(told, tc.programs)); d != "" {
				t.Errorf("observation (-want +got):\n%s", d)
			}
		})
	}
}
