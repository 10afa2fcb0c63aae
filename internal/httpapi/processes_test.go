// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/actions/proxies"
	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

const evidencePath = remediationPath + "/history/shop.done/evidence"

const hourPath = releasesPath + "/shop.web/health?history=true"

// denied is the answer of the API server to a user without a right.
var denied = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "executor-0", errors.New("no"))

// An empty list would say that there is no proxy, no record and no result.
func TestAProcessThatTheCallerDoesNotReachIsAProblem(t *testing.T) {
	answering := func(err error) records.Proxy {
		return func(context.Context, portforward.Target, string, map[string]string) ([]byte, error) { return nil, err }
	}
	away := func(err error) func(*inMemory, *clitest.Mesh) {
		return func(_ *inMemory, mesh *clitest.Mesh) {
			for _, replica := range mesh.Replicas {
				replica.Away = err
			}
		}
	}
	serving := func(err error) func(*inMemory, *clitest.Mesh) {
		return func(c *inMemory, _ *clitest.Mesh) { c.proxy = answering(err) }
	}
	unchanged := func(*inMemory, *clitest.Mesh) {}
	noMap := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, is := o.(*corev1.ConfigMap); is {
			return denied
		}
		return c.Get(ctx, key, o, opts...)
	}}
	without := func(list client.ObjectList) interceptor.Funcs {
		return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			if kindOf(o) == kindOf(list) {
				return denied
			}
			return c.List(ctx, o, opts...)
		}}
	}
	system := "plumbline-system"
	port := &portforward.DeniedError{Target: portforward.Target{Namespace: system, Pod: "xds-a", Port: 8083}, Cause: denied}
	for name, tc := range map[string]struct {
		change func(*inMemory, *clitest.Mesh)
		hooks  interceptor.Funcs
		target string
		want   wire.ProblemType
		right  *wire.MissingRight
		detail string
	}{
		"no right to reach pods":                     {serving(denied), interceptor.Funcs{}, evidencePath, wire.Forbidden, &wire.MissingRight{Verb: "get", Kind: "pods/proxy", Namespace: system}, ""},
		"no right to reach pods, and a list":         {serving(denied), interceptor.Funcs{}, remediationPath + "/history", wire.Forbidden, &wire.MissingRight{Verb: "get", Kind: "pods/proxy", Namespace: system}, ""},
		"no right to reach pods, and a plan is gone": {serving(denied), interceptor.Funcs{}, remediationPath + "/history/shop.done", wire.Forbidden, &wire.MissingRight{Verb: "get", Kind: "pods/proxy", Namespace: system}, ""},
		"no right to read the keys":                  {unchanged, noMap, evidencePath, wire.Forbidden, &wire.MissingRight{Verb: "get", Kind: "ConfigMap", Namespace: system}, ""},
		"no right to read the ledgers":               {unchanged, without(&v1alpha1.RemediationLedgerList{}), evidencePath, wire.Forbidden, &wire.MissingRight{Verb: "list", Kind: "RemediationLedger"}, ""},
		"no right to find the executor":              {unchanged, without(&corev1.PodList{}), evidencePath, wire.Forbidden, &wire.MissingRight{Verb: "list", Kind: "Pod", Namespace: system}, ""},
		"no right to find the discovery server":      {unchanged, without(&corev1.PodList{}), Prefix + "/proxies", wire.Forbidden, &wire.MissingRight{Verb: "list", Kind: "Pod", Namespace: system}, ""},
		"no right to forward ports":                  {away(port), interceptor.Funcs{}, Prefix + "/proxies", wire.Forbidden, &wire.MissingRight{Verb: "create", Kind: "pods/portforward", Namespace: system}, ""},
		"replicas that are away":                     {away(errors.New("10.0.0.1 refuses")), interceptor.Funcs{}, Prefix + "/proxies", wire.Unavailable, nil, "2 of 2 replicas of the discovery server did not answer: xds-a, xds-b"},
		"no right to forward ports, and an hour":     {away(port), interceptor.Funcs{}, hourPath, wire.Forbidden, &wire.MissingRight{Verb: "create", Kind: "pods/portforward", Namespace: system}, ""},
		"no replica that answers":                    {away(errors.New("10.0.0.1 refuses")), interceptor.Funcs{}, hourPath, wire.Unavailable, nil, "2 of 2 replicas of the discovery server did not answer: xds-a, xds-b"},
		"no replica that leads": {func(_ *inMemory, mesh *clitest.Mesh) {
			for _, replica := range mesh.Replicas {
				replica.Hours = nil
			}
		}, interceptor.Funcs{}, hourPath, wire.Unavailable, nil, "no replica of the discovery server leads now, and the leader alone has the history of a release: try again"},
		"an executor that serves no records": {serving(errors.New("10.0.0.1 refuses")), interceptor.Funcs{}, evidencePath, wire.Unavailable, nil, "pod executor-0 does not serve its records (executor.evidence.serve of the chart)"},
	} {
		t.Run(name, func(t *testing.T) {
			mesh := clitest.MeshOf()
			c := newCluster(t, tc.hooks, shop(t)...)
			c.forward = mesh.Forward(t)
			tc.change(c, mesh)
			a := newAnswers(t, c)
			w := a.get(tc.target)
			p := a.wantProblem(w, tc.want, "")
			if diff := cmp.Diff(tc.right, p.Right); diff != "" {
				t.Errorf("the right (-want +got):\n%s", diff)
			}
			if tc.detail != "" && p.Detail != tc.detail || strings.Contains(w.Body.String(), "10.0.0.1") {
				t.Errorf("the detail is %q, want %q", p.Detail, tc.detail)
			}
		})
	}
}

func TestAProcessThatDoesNotRunIsNamed(t *testing.T) {
	for name, tc := range map[string]struct{ component, target, detail string }{
		"no executor":         {"executor", evidencePath, "no executor runs in plumbline-system that the records could be read from"},
		"no discovery server": {"xds", Prefix + "/proxies", "no discovery server runs in plumbline-system that could be asked: is the mesh turned on (mesh.enabled of the chart)?"},
		"no key":              {"", evidencePath, "the ConfigMap plumbline-system/plumbline-evidence has no public key: has the executor ever run?"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := slices.DeleteFunc(shop(t), func(o client.Object) bool {
				return o.GetLabels()["app.kubernetes.io/component"] == tc.component && tc.component != ""
			})
			for _, o := range objects {
				if keys, is := o.(*corev1.ConfigMap); is && tc.component == "" {
					keys.Data = nil
				}
			}
			a := newAnswers(t, newCluster(t, interceptor.Funcs{}, objects...))
			if p := a.wantProblem(a.get(tc.target), wire.Unavailable, ""); p.Detail != tc.detail {
				t.Errorf("the detail is %q", p.Detail)
			}
		})
	}
}

func TestTheResultOfAPlanComesFromEvidenceWhenThePlanIsGone(t *testing.T) {
	a := newAnswers(t, newCluster(t, interceptor.Funcs{}, shop(t)...))
	got := want[wire.Result](a, a.get(remediationPath+"/history/shop.done"), http.StatusOK)
	if got.Source != "evidence" || got.Status != "partial_success" || got.PlanID != "uid-done" || len(got.TargetResults) != 2 || got.EvidencePacketID == nil {
		t.Errorf("the result is %+v", got)
	}
	if id := got.TargetResults[0].TargetID; id != "uid-of-web" {
		t.Errorf("the id of the target is %q", id)
	}
	if kept := want[wire.Result](a, a.get(remediationPath+"/history/shop.ended"), http.StatusOK); kept.Source != "plan" {
		t.Errorf("the result of a plan that is kept comes from %s", kept.Source)
	}
}

// A kept plan is told of once: by the plan.
func TestHistoryTellsOfEachPlanOnce(t *testing.T) {
	done := clitest.PlanOf("done", clitest.InPhase(v1alpha1.PlanPartialSuccess))
	a := newAnswers(t, newCluster(t, interceptor.Funcs{}, append(shop(t), done)...))
	var sources []string
	for _, r := range want[[]wire.Result](a, a.get(remediationPath+"/history"), http.StatusOK) {
		sources = append(sources, r.PlanName+" of "+string(r.Source))
	}
	if diff := cmp.Diff([]string{"done of plan", "ended of plan"}, sources); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestThePacketHasItsEnvelopesAndTheVerdict(t *testing.T) {
	a := newAnswers(t, newCluster(t, interceptor.Funcs{}, shop(t)...))
	w := a.get(evidencePath)
	got := want[wire.Evidence](a, w, http.StatusOK)
	if !got.Verified || len(got.Problems) > 0 || len(got.Envelopes) != 6 || len(got.Artifacts) != 3 || got.Chain.Records != 6 {
		t.Errorf("verified %t, %q, %d envelopes, %d artifacts, %+v", got.Verified, got.Problems, len(got.Envelopes), len(got.Artifacts), got.Chain)
	}
	for i, envelope := range got.Envelopes {
		sealed := archive(t).Sealed[i]
		if opened, err := evidence.Open(archive(t).Writer.Keys, envelope); err != nil || opened.Digest != sealed.Digest {
			t.Errorf("envelope %d: %v, its digest is %s, want %s", i, err, opened.Digest, sealed.Digest)
		}
	}
	if disposition := w.Header().Get("Content-Disposition"); disposition != `attachment; filename="evidence-shop-done.json"` {
		t.Errorf("the file is %s", disposition)
	}
}

func TestThePacketSaysWhyItIsNotVerified(t *testing.T) {
	for name, tc := range map[string]struct {
		proxy  func(records.Proxy) records.Proxy
		change func([]client.Object)
		want   string
	}{
		"a record is missing": {hiding(evidence.Name(clitest.PolicyUID, 2)), func([]client.Object) {}, "Gap "},
		"the end is missing":  {hiding(evidence.Name(clitest.PolicyUID, 6)), func([]client.Object) {}, "CutOff "},
		"no ledger knows the end": {func(p records.Proxy) records.Proxy { return p }, func(objects []client.Object) {
			for _, o := range objects {
				if l, is := o.(*v1alpha1.RemediationLedger); is {
					l.Status.Chains = nil
				}
			}
		}, "the end of the chain is not known: no ledger tells it"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := shop(t)
			tc.change(objects)
			c := newCluster(t, interceptor.Funcs{}, objects...)
			c.proxy = tc.proxy(c.proxy)
			a := newAnswers(t, c)
			got := want[wire.Evidence](a, a.get(evidencePath), http.StatusOK)
			if got.Verified || !strings.Contains(strings.Join(got.Problems, "\n"), tc.want) {
				t.Errorf("verified %t, %q, want %q", got.Verified, got.Problems, tc.want)
			}
		})
	}
}

// hiding has a record left out by the executor.
func hiding(name string) func(records.Proxy) records.Proxy {
	return func(next records.Proxy) records.Proxy {
		return func(ctx context.Context, target portforward.Target, path string, query map[string]string) ([]byte, error) {
			if strings.HasSuffix(path, name) {
				return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
			}
			body, err := next(ctx, target, path, query)
			return []byte(strings.Replace(string(body), name+"\n", "", 1)), err
		}
	}
}

// While the plan is kept, one chain is read, and the plan names its records.
func TestThePacketOfAKeptPlanIsComparedWithThePlan(t *testing.T) {
	done := clitest.PlanOf("done", clitest.InPhase(v1alpha1.PlanPartialSuccess))
	for i, s := range archive(t).Sealed[2:3] {
		done.Status.Steps = append(done.Status.Steps, v1alpha1.PlanStep{
			Index: int32(i), State: v1alpha1.StepVerified, Evidence: &v1alpha1.StepEvidence{Sequence: s.Record.Chain.Sequence, Digest: s.Digest},
		})
	}
	a := newAnswers(t, newCluster(t, interceptor.Funcs{}, append(shop(t), done)...))
	got := want[wire.Evidence](a, a.get(evidencePath), http.StatusOK)
	if text := strings.Join(got.Problems, "\n"); !strings.Contains(text, "NotInStatus ") || strings.Count(text, "\n") > 0 {
		t.Errorf("the problems are %q, want the verdict alone that the plan does not name", got.Problems)
	}
}

func TestEachStageOfAProxyHasAWord(t *testing.T) {
	for _, stage := range proxies.Stages() {
		word := wire.Spell(wire.ProxyStage(stage))
		if err := new(wire.Word[wire.ProxyStage]).UnmarshalText([]byte(word)); err != nil {
			t.Error(err)
		}
	}
}

// The replica that leads answers, whatever becomes of the other one.
func TestTheLastHourIsThatOfTheLeader(t *testing.T) {
	for name, other := range map[string]error{"both answer": nil, "the other replica is away": errors.New("no route")} {
		t.Run(name, func(t *testing.T) {
			mesh := clitest.MeshOf()
			mesh.Replicas["xds-b"].Away = other
			c := newCluster(t, interceptor.Funcs{}, shop(t)...)
			c.forward = mesh.Forward(t)
			a := newAnswers(t, c)
			health := want[wire.Health](a, a.get(hourPath), http.StatusOK)
			traffic := want[wire.Traffic](a, a.get(releasesPath+"/shop.web/traffic?history=true"), http.StatusOK)
			if h := health.LastHour; h == nil || len(h.Looks) != 54 || h.Looks[53].Variations[0].Name != "B" || h.Looks[53].Errors.FailsAt != 200 {
				t.Errorf("the looks are %+v", h)
			}
			if h := traffic.LastHour; h == nil || len(h.Cells) != 108 || !h.Since.Equal(clitest.Now.Add(-12*time.Minute)) {
				t.Errorf("the cells are %+v", h)
			}
			if plain := want[wire.Health](a, a.get(releasesPath+"/shop.web/health"), http.StatusOK); plain.LastHour != nil {
				t.Error("an hour is told that was not asked for")
			}
		})
	}
}

func TestTheNameOfAFileIsSafe(t *testing.T) {
	for name, want := range map[string]string{
		"web-7": "web-7", "../../etc/passwd": "______etc_passwd", "a\"; filename=b.exe\r\n": "a___filename_b_exe__", "é\u202e": "__", "a.b": "a_b", "": "",
		strings.Repeat("a", 80): strings.Repeat("a", 63),
	} {
		if got := safeName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
