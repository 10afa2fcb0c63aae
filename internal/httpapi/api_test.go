// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const planID = "2d6f9c3e-5b0a-4b52-8f7c-1d2e3f4a5b6c"

func TestAnObjectIsFoundByItsIDAndByItsName(t *testing.T) {
	a := newAnswers(t, newCluster(t, interceptor.Funcs{}, shop(t)...))
	for name, target := range map[string]string{
		"the id":                                remediationPath + "/plans/" + planID,
		"the namespace and the name":            remediationPath + "/plans/shop.production-e82871e6b1",
		"the name of one without a namespace":   Prefix + "/environments/production",
		"the id of one without a namespace":     Prefix + "/environments/e0000000-0000-4000-8000-000000000001",
		"a guard of a namespace":                Prefix + "/guards/shop.web",
		"a guard of the cluster":                Prefix + "/guards/platform",
		"the id of a guard of the cluster":      Prefix + "/guards/a0000000-0000-4000-8000-000000000001",
		"the status of a policy, by the id":     remediationPath + "/policies/7c0e1f5a-6f0f-4f55-9d2d-0a6f3a1d1001/status",
		"the result of a plan that has not run": remediationPath + "/history/shop.ended",
	} {
		if w := a.get(target); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestARequestIsRefusedWithAProblem(t *testing.T) {
	a := newAnswers(t, newCluster(t, interceptor.Funcs{}, shop(t)...))
	tests := map[string]struct {
		target   string
		problem  wire.ProblemType
		location string
	}{
		"an id that is none":           {remediationPath + "/plans/none", wire.NotFound, ""},
		"an id of another object":      {remediationPath + "/plans/e0000000-0000-4000-8000-000000000001", wire.NotFound, ""},
		"a name without its namespace": {remediationPath + "/plans/.web", wire.NotFound, ""},
		"a name with a slash":          {remediationPath + "/plans/shop.a%2Fb", wire.NotFound, ""},
		"a name that leads upwards":    {remediationPath + "/plans/shop.%2E%2E", wire.NotFound, ""},
		"a policy that leads upwards":  {remediationPath + "/policies/%2E%2E%2Fpods", wire.NotFound, ""},
		"a namespace with a slash":     {remediationPath + "/plans?namespace=a%2Fb", wire.BadRequest, "query.namespace"},
		"a name that is none":          {Prefix + "/guards/shop.none", wire.NotFound, ""},
		"an unknown query":             {remediationPath + "/plans?stat=running", wire.BadRequest, "query.stat"},
		"a word that is none":          {remediationPath + "/plans?status=Running", wire.BadRequest, "query.status"},
		"a time that is none":          {remediationPath + "/plans?since=yesterday", wire.BadRequest, "query.since"},
		"more than a page has":         {Prefix + "/baselines?limit=501", wire.BadRequest, "query.limit"},
		"a page without objects":       {Prefix + "/baselines?limit=0", wire.BadRequest, "query.limit"},
		"a cursor that is none":        {Prefix + "/baselines?continue=x", wire.BadRequest, "query.continue"},
		"records by an Environment":    {remediationPath + "/history?environmentId=production", wire.BadRequest, "query.environmentId"},
		"a source that is none":        {remediationPath + "/history?source=etcd", wire.BadRequest, "query.source"},
		"a stage that is none":         {Prefix + "/proxies?stage=Refused", wire.BadRequest, "query.stage"},
		"evidence of no plan":          {remediationPath + "/history/shop.none/evidence", wire.NotFound, ""},
		"evidence of no id":            {remediationPath + "/history/e0000000-0000-4000-8000-000000000001/evidence", wire.NotFound, ""},
		"a result of no plan":          {remediationPath + "/history/shop.none", wire.NotFound, ""},
		"a path that is none":          {Prefix + "/plans", wire.NotFound, ""},
		"a path outside of the API":    {"/favicon.ico", wire.NotFound, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := a.problem(a.get(tc.target))
			if p.Type != wire.ProblemBase+string(tc.problem) {
				t.Errorf("the type is %s, want %s", p.Type, tc.problem)
			}
			if tc.location != "" && (len(p.Errors) != 1 || p.Errors[0].Location != tc.location) {
				t.Errorf("the errors are %v, want one at %s", p.Errors, tc.location)
			}
		})
	}
}

func TestAnErrorOfTheAPIServerIsAProblem(t *testing.T) {
	resource := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "remediationplans"}
	tests := map[string]struct {
		err  error
		want wire.Problem
	}{
		"a right that is missing": {
			apierrors.NewForbidden(resource, "", errors.New("no")),
			wire.Problem{Type: "forbidden", Status: 403, Right: &wire.MissingRight{Verb: "list", Kind: "RemediationPlan", Namespace: "shop"}},
		},
		"a user who is unknown":  {apierrors.NewUnauthorized("no"), wire.Problem{Type: "unauthenticated", Status: 401}},
		"a kind that is missing": {&meta.NoKindMatchError{}, wire.Problem{Type: "kind-not-installed", Status: 404}},
		"a path that the API server does not serve": {
			apierrors.NewGenericServerResponse(404, "get", resource, "", "", 0, true), wire.Problem{Type: "kind-not-installed", Status: 404},
		},
		"an API server that asks to wait": {apierrors.NewTooManyRequests("later", 7), wire.Problem{Type: "too-many-requests", Status: 429}},
		"an API server that is away":      {&url.Error{Op: "Get", URL: "https://10.0.0.1", Err: errors.New("refused")}, wire.Problem{Type: "unavailable", Status: 503}},
		"an API server that is too slow":  {context.DeadlineExceeded, wire.Problem{Type: "unavailable", Status: 503}},
		"an error of ours":                {errors.New("a secret detail"), wire.Problem{Type: "internal", Status: 500}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fails := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return tc.err }}
			a := newAnswers(t, newCluster(t, fails))
			w := a.get(remediationPath + "/plans?namespace=shop")
			got := a.problem(w)
			if strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), "10.0.0.1") {
				t.Errorf("the answer tells a text of the log: %s", w.Body)
			}
			got.Type = strings.TrimPrefix(got.Type, wire.ProblemBase)
			got.Title, got.Detail = "", ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if wait := w.Header().Get("Retry-After"); (wait == "7") != (w.Code == http.StatusTooManyRequests) {
				t.Errorf("Retry-After is %q", wait)
			}
		})
	}
}

// Plans are shown to a caller who may read them and no Environments.
func TestIDsThatTheCallerMayNotReadAreLeftOut(t *testing.T) {
	for name, err := range map[string]error{
		"forbidden": apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")), "a kind that is missing": &meta.NoKindMatchError{},
	} {
		t.Run(name, func(t *testing.T) {
			withholds := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, is := list.(*v1alpha1.EnvironmentList); is {
					return err
				}
				return c.List(ctx, list, opts...)
			}}
			a := newAnswers(t, newCluster(t, withholds, shop(t)...))
			w := a.get(remediationPath + "/plans/" + planID)
			var p wire.Plan
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusOK {
				t.Fatal(w.Code, err)
			}
			if p.EnvironmentID != "" || p.EnvironmentName != "production" {
				t.Errorf("the Environment is %q, %q", p.EnvironmentID, p.EnvironmentName)
			}
		})
	}
}

// An empty list would say that the Environment has no such object.
func TestAFilterByAnEnvironmentThatCannotBeReadIsRefused(t *testing.T) {
	tests := map[string]struct {
		withheld any // a list
		target   string
		status   int
	}{
		"plans by the id":                        {&v1alpha1.EnvironmentList{}, remediationPath + "/plans?environmentId=e0000000-0000-4000-8000-000000000001", 403},
		"plans by the name, which plans have":    {&v1alpha1.EnvironmentList{}, remediationPath + "/plans?environmentId=production", 200},
		"releases by the name":                   {&v1alpha1.EnvironmentList{}, releasesPath + "?environmentId=production", 403},
		"releases whose namespaces are not read": {&corev1.NamespaceList{}, releasesPath + "?environmentId=production", 403},
		"releases of all Environments":           {&corev1.NamespaceList{}, releasesPath, 200},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			withholds := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if reflect.TypeOf(list) == reflect.TypeOf(tc.withheld) {
					return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
				}
				return c.List(ctx, list, opts...)
			}}
			a := newAnswers(t, newCluster(t, withholds, shop(t)...))
			if w := a.get(tc.target); w.Code != tc.status {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

func TestAKindIsReadInChunks(t *testing.T) {
	var asked []string
	chunks := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		wanted := (&client.ListOptions{}).ApplyOptions(opts)
		some, is := list.(*v1alpha1.BaselineList)
		if !is {
			return c.List(ctx, list, opts...)
		}
		if len(some.Items) > 0 || wanted.Limit != chunk {
			t.Errorf("a list with %d objects is read by %d", len(some.Items), wanted.Limit)
		}
		asked = append(asked, wanted.Continue)
		some.Items = append(some.Items, *baseline("of-" + wanted.Continue))
		some.Continue = map[string]string{"": "second", "second": "third"}[wanted.Continue]
		return nil
	}}
	a := newAnswers(t, newCluster(t, chunks))
	var page []wire.Baseline
	if err := json.Unmarshal(a.get(Prefix+"/baselines").Body.Bytes(), &page); err != nil || len(page) != 3 {
		t.Errorf("%d objects: %v", len(page), err)
	}
	if diff := cmp.Diff([]string{"", "second", "third"}, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnAnonymousCallerIsRefused(t *testing.T) {
	for _, user := range []string{"", anonymous} {
		c := newCluster(t, interceptor.Funcs{})
		c.user = authenticationv1.UserInfo{Username: user}
		a := newAnswers(t, c)
		if p := a.problem(a.get(Prefix + "/whoami")); p.Status != http.StatusUnauthorized {
			t.Errorf("%q: %+v", user, p)
		}
	}
}

func TestAListIsNarrowedDown(t *testing.T) {
	a := newAnswers(t, newCluster(t, interceptor.Funcs{}, shop(t)...))
	tests := map[string]struct {
		target string
		want   int
	}{
		"all plans":                          {remediationPath + "/plans", 2},
		"those of an Environment by its id":  {remediationPath + "/plans?environmentId=e0000000-0000-4000-8000-000000000001", 1},
		"those of an Environment by name":    {remediationPath + "/plans?environmentId=staging", 1},
		"those of a policy":                  {remediationPath + "/plans?policyId=7c0e1f5a-6f0f-4f55-9d2d-0a6f3a1d1001", 1},
		"those of a status":                  {remediationPath + "/plans?status=cancelled", 1},
		"those since a time":                 {remediationPath + "/plans?since=2026-03-01T12:00:00Z", 1},
		"those since a later time":           {remediationPath + "/plans?since=2026-03-01T12:00:01Z", 0},
		"those of another namespace":         {remediationPath + "/plans?namespace=bank", 0},
		"those that have ended":              {remediationPath + "/history", 2},
		"those that are kept":                {remediationPath + "/history?source=plan", 1},
		"those that evidence alone tells of": {remediationPath + "/history?source=evidence", 1},
		"history of another namespace":       {remediationPath + "/history?namespace=bank", 0},
		"history of another policy":          {remediationPath + "/history?policyId=none", 0},
		"history of a policy":                {remediationPath + "/history?policyId=production&source=evidence", 1},
		"history of a status":                {remediationPath + "/history?status=partial_success", 1},
		"history since a later time":         {remediationPath + "/history?source=evidence&since=2026-03-01T11:30:00Z", 0},
		"history of an Environment":          {remediationPath + "/history?source=plan&environmentId=staging", 1},
		"proxies":                            {Prefix + "/proxies", 5},
		"proxies of a namespace":             {Prefix + "/proxies?namespace=bank", 1},
		"proxies that no replica knows":      {Prefix + "/proxies?stage=not_connected", 1},
		"releases of an Environment":         {releasesPath + "?environmentId=production", 1},
		"releases of another Environment":    {releasesPath + "?environmentId=staging", 0},
		"releases of a status":               {releasesPath + "?status=completed", 0},
		"guards of both kinds":               {Prefix + "/guards", 2},
		"guards of a namespace":              {Prefix + "/guards?namespace=shop", 1},
		"Baselines of a state":               {Prefix + "/baselines?state=in_sync", 0},
		"assessments of a verdict":           {Prefix + "/assessments?verdict=ineffective", 0},
		"policies of another Environment":    {remediationPath + "/policies?environmentId=staging", 0},
		"policies of an Environment by name": {remediationPath + "/policies?environmentId=production", 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := a.get(tc.target)
			var items []any
			if err := json.Unmarshal(w.Body.Bytes(), &items); err != nil || items == nil || len(items) != tc.want {
				t.Errorf("%d %v: %d items, want %d: %s", w.Code, err, len(items), tc.want, w.Body)
			}
		})
	}
}

func TestACallerWhoHasTheRepresentationIsSentNone(t *testing.T) {
	a := newAnswers(t, newCluster(t, interceptor.Funcs{}, shop(t)...))
	for _, o := range reads() {
		tag := a.get(o.example).Header().Get("ETag")
		if !strings.HasPrefix(tag, `"`) {
			t.Errorf("%s: the ETag %q is not strong", o.id, tag)
		}
		for name, header := range map[string]string{"the tag": tag, "one of several": `"other", ` + tag, "a weak comparison": "W/" + tag, "any": "*"} {
			if o.id == "whoami" {
				continue // it takes no tag
			}
			w := a.get(o.example, "If-None-Match", header)
			if w.Code != http.StatusNotModified || w.Body.Len() != 0 || w.Header().Get("ETag") != tag {
				t.Errorf("%s, %s: %d %q %s", o.id, name, w.Code, w.Header().Get("ETag"), w.Body)
			}
		}
		if w := a.get(o.example, "If-None-Match", `"other"`); w.Code != http.StatusOK {
			t.Errorf("%s with another tag: %d", o.id, w.Code)
		}
	}
}

// If-Match of a policy is about its spec, so the status that the assessor writes leaves the tag.
func TestTheTagOfAPolicyIsTheVersionOfItsSpec(t *testing.T) {
	a := newAnswers(t, newCluster(t, interceptor.Funcs{}, shop(t)...))
	w := a.get(remediationPath + "/policies/production-auto-remediation")
	if got, want := w.Header().Get("ETag"), `"7c0e1f5a-6f0f-4f55-9d2d-0a6f3a1d1001.4"`; got != want {
		t.Errorf("the tag is %s, want %s", got, want)
	}
}

// A reader who follows the links sees each object that stays, once, while others come and go.
func TestPagesRepeatNoObjectAndLeaveNoneOut(t *testing.T) {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]{1,3}`), 1, 12, rapid.ID)
	rapid.Check(t, func(t *rapid.T) {
		stay, others := names.Draw(t, "stay"), names.Draw(t, "others")
		p := Page{Limit: rapid.IntRange(1, 5).Draw(t, "limit")}
		seen := map[string]int{}
		for first := true; first || p.Continue != ""; first = false {
			var objects []client.Object
			for _, name := range stay {
				objects = append(objects, baseline("stays-"+name))
			}
			for _, name := range others {
				if rapid.Bool().Draw(t, "there") {
					objects = append(objects, baseline("comes-"+name))
				}
			}
			page, cursor, err := cut(&p, objects, placeOf)
			if err != nil || len(page) > p.Limit {
				t.Fatalf("%d objects: %v", len(page), err)
			}
			for _, o := range page {
				seen[o.GetName()]++
			}
			p.Continue = cursor
		}
		for _, name := range stay {
			if seen["stays-"+name] != 1 {
				t.Errorf("%s was shown %d times", name, seen["stays-"+name])
			}
		}
		for name, times := range seen {
			if times > 1 {
				t.Errorf("%s was shown %d times", name, times)
			}
		}
	})
}

func baseline(name string) *v1alpha1.Baseline {
	return &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

func TestALinkLeadsToTheNextPage(t *testing.T) {
	a := newAnswers(t, newCluster(t, interceptor.Funcs{}, baseline("a"), baseline("b"), baseline("c"), baseline("d"), baseline("e")))
	var pages []string
	for target := Prefix + "/baselines?limit=2&namespace=shop"; target != ""; {
		w := a.get(target)
		var page []wire.Baseline
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		names := ""
		for _, b := range page {
			names += b.Name
		}
		pages = append(pages, names)
		link, _ := strings.CutSuffix(w.Header().Get("Link"), `>; rel="next"`)
		target = strings.TrimPrefix(link, "<")
	}
	if diff := cmp.Diff([]string{"ab", "cd", "e"}, pages); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
