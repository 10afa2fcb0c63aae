// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// Users of the scripts, by short name.
var testUsers = map[string]string{
	"ci":                   "system:serviceaccount:ci:deployer",
	"hpa":                  "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
	"gc":                   userGarbageCollector,
	"namespace-controller": userNamespaceController,
	"executor":             "system:serviceaccount:plumbline-system:executor",
}

// shortUsers puts the short names back, so that scripts stay readable.
func shortUsers(text string) string {
	for _, short := range sortedKeys(testUsers) {
		text = strings.ReplaceAll(text, testUsers[short], short)
	}
	return text
}

func user(name string) string { return cmpOr(testUsers[name], name) }

// testGuardSpec trusts ci and expects the autoscaler to move replicas.
func testGuardSpec() v1alpha1.GuardSpec {
	return v1alpha1.GuardSpec{
		TrustedWriters: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "deployer"}}},
		ExpectedWriters: []v1alpha1.ExpectedWriter{{
			Name: "autoscaler", Paths: []string{"/spec/replicas"},
			Writers: v1alpha1.Writers{Users: []string{testUsers["hpa"]}},
		}},
	}
}

// TestScenarios plays the scripts in testdata/scenarios. Rewrite them with
// UPDATE_GOLDEN=1 (or datadriven's -rewrite).
func TestScenarios(t *testing.T) {
	if golden.Updates() {
		if err := flag.Set("rewrite", "true"); err != nil {
			t.Fatal(err)
		}
	}
	datadriven.Walk(t, filepath.Join("testdata", "scenarios"), func(t *testing.T, path string) {
		w := newWorld(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.t = t
			return shortUsers(play(w, d))
		})
	})
}

func play(w *world, d *datadriven.TestData) string {
	w.t.Helper()
	command, ok := scriptCommands[d.Cmd]
	if !ok {
		d.Fatalf(w.t.(*testing.T), "unknown command %s", d.Cmd)
	}
	command(w, d)
	return w.report()
}

var scriptCommands = map[string]func(*world, *datadriven.TestData){
	"guard":   playGuard,
	"create":  playCreate,
	"write":   playWrite,
	"apply":   playApply,
	"delete":  playDelete,
	"relist":  func(w *world, _ *datadriven.TestData) { w.observe(true, false) },
	"resync":  func(w *world, _ *datadriven.TestData) { w.observe(false, false) },
	"restart": func(w *world, _ *datadriven.TestData) { w.restart(); w.observe(true, false) },
	"status-write": func(w *world, _ *datadriven.TestData) {
		w.statusWrite()
		w.observe(false, false)
	},
	"records-arrive": func(w *world, d *datadriven.TestData) {
		w.records, w.late = append(w.records, w.late...), nil
		if arg(d, "seen", "yes") == "yes" {
			w.observe(false, false)
		}
	},
	"forge-record": playForge,
	"fifty-scales": playFiftyScales,
	"older-hash-version": func(w *world, _ *datadriven.TestData) {
		var status v1alpha1.BaselineStatus
		w.state.WriteStatus(&status)
		for _, hash := range []*string{&status.Observed.Hash, &status.Observed.FullHash, &w.state.Authorized.Hash} {
			*hash = strings.Replace(*hash, "pl1:", "pl0:", 1)
		}
		w.restartWith(status)
		w.observe(true, false)
	},
	"keep-revisions": func(w *world, d *datadriven.TestData) {
		n, err := strconv.Atoi(arg(d, "before", ""))
		if err != nil {
			d.Fatalf(w.t.(*testing.T), "keep-revisions: %v", err)
		}
		w.former = w.former[max(0, len(w.former)-n):]
	},
	"lose-write": func(w *world, d *datadriven.TestData) {
		wr := scriptWrite(d)
		wr.changes = parseChanges(w.t, w.live.Body, w.gvk, d.Input)
		w.update(wr)
		live := w.live
		w.seen = &live
	},
	// The webhook records a write that the API server then refuses.
	"refused-write": func(w *world, d *datadriven.TestData) {
		stored, generation, version := w.live, w.generation, w.rv
		wr := scriptWrite(d)
		wr.changes = parseChanges(w.t, w.live.Body, w.gvk, d.Input)
		w.update(wr)
		w.live, w.generation, w.rv = stored, generation, version
	},
	"remember-status": func(w *world, _ *datadriven.TestData) {
		w.remembered = &v1alpha1.BaselineStatus{}
		w.state.WriteStatus(w.remembered)
	},
	"crash-before-status": func(w *world, _ *datadriven.TestData) {
		w.restartWith(*w.remembered)
		w.observe(true, false)
	},
	"lose-body":     func(w *world, _ *datadriven.TestData) { w.lost = true },
	"put-body-back": func(w *world, _ *datadriven.TestData) { w.lost = false },
	// The kind of Baselines is deleted and made again.
	"lose-baselines": func(w *world, _ *datadriven.TestData) {
		w.now = w.now.Add(time.Second)
		w.state, w.since, w.lost = NewState(w.state.Name, w.state.Target), w.now, false
		w.observe(true, false)
	},
	"policy-away": func(w *world, _ *datadriven.TestData) { w.policy.remove() },
	"policy-back": func(w *world, _ *datadriven.TestData) {
		w.rv++
		w.now = w.now.Add(time.Second)
		w.policy.make(w.now, w.rv)
	},
	"unknown": func(w *world, _ *datadriven.TestData) { w.step(Unknown{Why: "forbidden"}, nil) },
	"accept":  playAccept,
	"advance": playAdvance,
	"except":  playExcept,
	"config":  playConfig,
}

func arg(d *datadriven.TestData, name, fallback string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name && len(a.Vals) > 0 {
			return a.Vals[0]
		}
	}
	return fallback
}

func scriptWrite(d *datadriven.TestData) write {
	tool := "kubectl-edit"
	if arg(d, "through", "") != "" {
		tool = "kubectl"
	}
	return write{
		user: user(arg(d, "by", "alice")), sub: arg(d, "through", ""), record: arg(d, "record", "yes"),
		manager: arg(d, "manager", tool), auth: arg(d, "authenticated", "") == "yes",
		forged: user(arg(d, "forged", "")), applies: arg(d, "operation", "Update") == "Apply",
	}
}

// playForge adds a record like the last one, by another user: a late one, or with
// arrives=first one that is there before the true record. touches names another field.
func playForge(w *world, d *datadriven.TestData) {
	r := w.last
	r.User, r.Authenticated = user(arg(d, "by", "")), arg(d, "authenticated", "") == "yes"
	if path := arg(d, "touches", ""); path != "" {
		r.Fields = []string{path}
	}
	if arg(d, "arrives", "") == "first" {
		w.records = append(w.records, r)
		return
	}
	w.late = append(w.late, r)
}

// playFiftyScales has the autoscaler, a human and the status writers take turns.
func playFiftyScales(w *world, d *datadriven.TestData) {
	for i := range 50 {
		w.now = w.now.Add(time.Second)
		w.update(write{
			user: user("hpa"), sub: "scale", manager: "kube-controller-manager",
			changes: parseChanges(w.t, w.live.Body, w.gvk, fmt.Sprintf("/spec/replicas = %d", 4+i%7)),
		})
		w.observe(false, false)
		w.statusWrite()
		w.observe(false, false)
		if i%10 == 5 {
			edit := fmt.Sprintf(`/spec/template/spec/containers/[name=app]/env/[name=E%d] = {"name":"E%d","value":"x"}`, i, i)
			w.update(write{user: "alice", changes: parseChanges(w.t, w.live.Body, w.gvk, edit)})
			w.observe(false, false)
		}
		if n := len(w.state.Masks); n != 1 {
			d.Fatalf(w.t.(*testing.T), "after %d scales: %d masks", i+1, n)
		}
	}
}

func playGuard(w *world, d *datadriven.TestData) {
	spec := testGuardSpec()
	for line := range strings.Lines(d.Input) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "ignore":
			spec.Ignore = append(spec.Ignore, rest)
		case "expect":
			name, path, _ := strings.Cut(rest, " ")
			spec.ExpectedWriters = append(spec.ExpectedWriters, v1alpha1.ExpectedWriter{
				Name: name, Paths: []string{path}, Writers: v1alpha1.Writers{Users: []string{user(name)}},
			})
		case "authenticated-deletes":
			spec.AuthenticatedDeletes = v1alpha1.AuthenticatedDeletesRequired
		case "expect-nobody":
			spec.ExpectedWriters = nil
		case "trust":
			spec.TrustedWriters.Users = append(spec.TrustedWriters.Users, user(rest))
		default:
			d.Fatalf(w.t.(*testing.T), "guard: %q", line)
		}
	}
	w.guard(arg(d, "name", "shop"), spec, w.now)
	if arg(d, "wait", "yes") == "yes" {
		w.now = w.now.Add(time.Minute)
	}
}

func playCreate(w *world, d *datadriven.TestData) {
	body := testDeployment
	if d.Input != "" {
		body = d.Input
	}
	w.create(scriptWrite(d), body)
	w.deliver(d)
}

func playWrite(w *world, d *datadriven.TestData) {
	wr := scriptWrite(d)
	wr.changes = parseChanges(w.t, w.live.Body, w.gvk, d.Input)
	w.update(wr)
	w.deliver(d)
}

func playDelete(w *world, d *datadriven.TestData) {
	w.remove(scriptWrite(d))
	if arg(d, "seen", "yes") == "yes" {
		w.observe(false, arg(d, "namespace", "") == "terminating")
	}
}

func (w *world) deliver(d *datadriven.TestData) {
	w.t.Helper()
	switch arg(d, "seen", "yes") {
	case "yes":
		w.observe(false, false)
	case "later": // the watch will deliver it
	default:
		w.seen, w.created = nil, false
	}
}

func playAccept(w *world, d *datadriven.TestData) {
	request := &v1alpha1.AcceptRequest{Hash: w.state.Observed.Hash, RequestedBy: user(arg(d, "by", "alice"))}
	request.Hash = arg(d, "hash", request.Hash)
	if !w.exists {
		w.step(Absent{SeenAt: w.now}, request)
		return
	}
	w.step(Present{Version: w.live, UID: w.uidText(), CreatedAt: w.createdAt, Prev: w.seen, SeenAt: w.now}, request)
	live := w.live
	w.seen = &live
}

func playAdvance(w *world, d *datadriven.TestData) {
	by, err := time.ParseDuration(arg(d, "by", ""))
	if err != nil {
		d.Fatalf(w.t.(*testing.T), "advance: %v", err)
	}
	w.now = w.now.Add(by)
	w.rule()
	w.observe(false, false)
}

func playConfig(w *world, d *datadriven.TestData) {
	for _, a := range d.CmdArgs {
		switch a.String() {
		case "no-stamp":
			w.policy.remove()
		case "webhook-stamps-too":
			w.config.Stamp, w.policy.webhook = StampWebhook, true
		case "webhook-stamp":
			w.config.Stamp, w.policy.webhook = StampWebhook, true
			w.policy.remove()
		case "policy-stamp":
			w.config.Stamp, w.policy.webhook = StampInProcess, false
		case "grace":
			w.config.Grace, w.healthy = maxGrace, true
		case "no-key":
			w.config.Key = nil
		case "new-key":
			w.config.Key = []byte("another key")
		default:
			d.Fatalf(w.t.(*testing.T), "config %s", a)
		}
	}
}
