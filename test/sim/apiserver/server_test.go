// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

var epoch = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

func newServer(t *testing.T) (*apiserver.Server, client.Client) {
	t.Helper()
	server := apiserver.New(func() time.Time { return epoch }, apiserver.Builtin()...)
	config := &rest.Config{Host: "http://sim", Transport: server.Transport("alice", "tests"), ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: server.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	return server, c
}

func settings(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"is": name}},
		Data:       map[string]string{"value": value},
	}
}

func TestTheHistoryIsWhatWasStored(t *testing.T) {
	server, c := newServer(t)
	m := settings("first", "1")
	if err := c.Create(t.Context(), m, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	m = settings("first", "1")
	if err := c.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	m.Data["value"] = "2"
	stale := m.DeepCopy()
	if err := c.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(t.Context(), m); err != nil { // nothing new
		t.Fatal(err)
	}
	if err := c.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("a stale update: %v", err)
	}
	if err := c.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, commit := range server.History() {
		line := []string{commit.User, commit.Client, commit.Method, commit.Name, value(commit.Before), value(commit.After)}
		got = append(got, strings.Join(line, " "))
	}
	want := []string{"alice tests POST shop - -", "alice tests POST first - 1", "alice tests PUT first 1 2", "alice tests DELETE first 2 -"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if server.Revision() != 4 {
		t.Errorf("revision %d after four writes", server.Revision())
	}
}

func value(o apiserver.Object) string {
	data, _ := o["data"].(map[string]any)
	if v, ok := data["value"].(string); ok {
		return v
	}
	return "-"
}

func TestOnlyWhoAsksForAnyVersionIsShownAnOldOne(t *testing.T) {
	server, c := newServer(t)
	m := settings("first", "1")
	if err := c.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	old := server.Revision()
	m.Data["value"] = "2"
	if err := c.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	server.Stale(func(string, int64) int64 { return old })
	for want, options := range map[string]*client.GetOptions{"1": {Raw: &metav1.GetOptions{ResourceVersion: "0"}}, "2": {}} {
		var got corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), &got, options); err != nil || got.Data["value"] != want {
			t.Errorf("got %q (%v), want %q", got.Data["value"], err, want)
		}
	}
	var list corev1.ConfigMapList
	if err := c.List(t.Context(), &list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}); err != nil || list.Items[0].Data["value"] != "1" {
		t.Errorf("got %v (%v)", list.Items, err)
	}
}

func TestLists(t *testing.T) {
	server, c := newServer(t)
	for _, name := range []string{"c", "a", "b"} {
		if err := c.Create(t.Context(), settings(name, "1")); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		options []client.ListOption
		want    []string
	}{
		"all, by name":        {nil, []string{"a", "b", "c"}},
		"of a namespace":      {[]client.ListOption{client.InNamespace("other")}, nil},
		"by label":            {[]client.ListOption{client.MatchingLabels{"is": "b"}}, []string{"b"}},
		"by the field's name": {[]client.ListOption{client.MatchingFields{"metadata.name": "c"}}, []string{"c"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var list corev1.ConfigMapList
			if err := c.List(t.Context(), &list, test.options...); err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range list.Items {
				got = append(got, list.Items[i].Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if list.ResourceVersion != "4" {
				t.Errorf("the list is of version %s, the server has %d", list.ResourceVersion, server.Revision())
			}
		})
	}
}

func TestWhoMayNotIsToldSo(t *testing.T) {
	server, c := newServer(t)
	server.Authorize(func(a apiserver.Attributes) bool { return a.Verb != "update" || a.User != "alice" })
	m := settings("first", "1")
	if err := c.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	err := c.Update(t.Context(), m)
	want := `configmaps "first" is forbidden: User "alice" cannot update resource "configmaps" in API group "" in the namespace "shop"`
	if !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if n := len(server.History()); n != 2 {
		t.Errorf("%d writes were stored", n)
	}
}

func TestAccessReviews(t *testing.T) {
	server, c := newServer(t)
	server.Review(func(a apiserver.Attributes) bool {
		return a.User == "bob" && a.Verb == "update" && a.RequestedBy == "alice"
	})
	server.Authorize(func(a apiserver.Attributes) bool { return a.User == "alice" && a.Verb == "get" })
	attributes := &authorizationv1.ResourceAttributes{Namespace: "shop", Verb: "update", Group: "apps", Resource: "deployments", Name: "web"}
	for user, want := range map[string]bool{"bob": true, "carol": false} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: attributes}}
		if err := c.Create(t.Context(), review); err != nil || review.Status.Allowed != want {
			t.Errorf("%s: %v (%v), want %v", user, review.Status.Allowed, err, want)
		}
	}
	for verb, want := range map[string]bool{"get": true, "update": false} {
		own := attributes.DeepCopy()
		own.Verb = verb
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: own}}
		if err := c.Create(t.Context(), review); err != nil || review.Status.Allowed != want {
			t.Errorf("%s: %v (%v), want %v", verb, review.Status.Allowed, err, want)
		}
	}
	if err := c.Create(t.Context(), &authorizationv1.SubjectAccessReview{}); !apierrors.IsInvalid(err) {
		t.Errorf("a review about nobody: %v", err)
	}
}

func TestEventsAreTakenAndForgotten(t *testing.T) {
	server, c := newServer(t)
	event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e.1"}, EventTime: metav1.NowMicro(), Action: "Remediate"}
	if err := c.Create(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	if n := len(server.History()); n != 1 {
		t.Errorf("%d writes were stored", n)
	}
}

func TestWhatIsWatchedIsToldInItsOrder(t *testing.T) {
	server, c := newServer(t)
	var got []int64
	server.Watch(func(commit apiserver.Commit) { got = append(got, commit.Revision) })
	for _, name := range []string{"a", "b"} {
		if err := c.Create(t.Context(), settings(name, "1")); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]int64{2, 3}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is not there says so, and does not look like something else.
func TestWhatIsNotSupportedIsRefused(t *testing.T) {
	server, _ := newServer(t)
	configMaps := "/api/v1/namespaces/shop/configmaps"
	tests := map[string]struct {
		request apiserver.Request
		code    int
	}{
		"a path of nothing":             {apiserver.Request{Method: http.MethodGet, Path: "/"}, http.StatusNotFound},
		"a kind that is not served":     {apiserver.Request{Method: http.MethodGet, Path: "/apis/apps/v1/namespaces/shop/daemonsets"}, http.StatusNotFound},
		"a subresource that is not":     {apiserver.Request{Method: http.MethodGet, Path: configMaps + "/a/status"}, http.StatusNotFound},
		"a namespaced kind without one": {apiserver.Request{Method: http.MethodGet, Path: "/api/v1/configmaps/a"}, http.StatusNotFound},
		"a watch":                       {apiserver.Request{Method: http.MethodGet, Path: configMaps, Query: url.Values{"watch": {"true"}}}, http.StatusMethodNotAllowed},
		"a removal of all":              {apiserver.Request{Method: http.MethodDelete, Path: configMaps}, http.StatusMethodNotAllowed},
		"a list in parts":               {apiserver.Request{Method: http.MethodGet, Path: configMaps, Query: url.Values{"continue": {"x"}}}, http.StatusBadRequest},
		"an unknown field selector":     {apiserver.Request{Method: http.MethodGet, Path: configMaps, Query: url.Values{"fieldSelector": {"spec.x=1"}}}, http.StatusBadRequest},
		"a body that is none":           {apiserver.Request{Method: http.MethodPost, Path: configMaps, Body: []byte("{")}, http.StatusBadRequest},
		"a body of another kind":        {apiserver.Request{Method: http.MethodPost, Path: configMaps, Body: []byte(`{"kind":"Secret","apiVersion":"v1"}`)}, http.StatusBadRequest},
		"server-side apply":             {apiserver.Request{Method: http.MethodPatch, Path: "/api/v1/namespaces/shop", ContentType: string(types.ApplyYAMLPatchType)}, http.StatusUnsupportedMediaType},
		"a strategic merge patch":       {apiserver.Request{Method: http.MethodPatch, Path: "/api/v1/namespaces/shop", ContentType: string(types.StrategicMergePatchType)}, http.StatusUnsupportedMediaType},
		"a patch that is none":          {apiserver.Request{Method: http.MethodPatch, Path: "/api/v1/namespaces/shop", ContentType: string(types.JSONPatchType), Body: []byte("{")}, http.StatusBadRequest},
		"a patch that leaves no object": {apiserver.Request{Method: http.MethodPatch, Path: "/api/v1/namespaces/shop", ContentType: string(types.MergePatchType), Body: []byte(`{"metadata":null}`)}, http.StatusUnprocessableEntity},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := server.Do(test.request)
			var status metav1.Status
			if err := utiljson.Unmarshal(got.Body, &status); err != nil {
				t.Fatal(err)
			}
			if got.Code != test.code || status.Code != int32(test.code) || status.Kind != "Status" {
				t.Errorf("got %d %s, want %d", got.Code, got.Body, test.code)
			}
		})
	}
	if n := len(server.History()); n != 1 {
		t.Errorf("%d writes were stored", n)
	}
}

func TestTheServerTellsItsTime(t *testing.T) {
	server, _ := newServer(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://sim/api/v1/namespaces/shop", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	got, err := server.Transport("alice", "tests").RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if date := got.Header.Get("Date"); date != epoch.Format(http.TimeFormat) {
		t.Errorf("got %q", date)
	}
}

func TestAMutationOfAdmissionIsStored(t *testing.T) {
	kinds := apiserver.Builtin()
	for i := range kinds {
		if kinds[i].Kind == "ConfigMap" {
			kinds[i].Mutate = func(user string, _, after apiserver.Object) {
				after["metadata"].(map[string]any)["annotations"] = map[string]any{"writer": user}
			}
		}
	}
	server := apiserver.New(func() time.Time { return epoch }, kinds...)
	if _, err := server.Apply("", "v1", "namespaces", "", apiserver.Object{"metadata": map[string]any{"name": "shop"}}); err != nil {
		t.Fatal(err)
	}
	path, body := "/api/v1/namespaces/shop/configmaps", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`
	server.Do(apiserver.Request{User: "alice", Method: http.MethodPost, Path: path, Body: []byte(body)})
	server.Do(apiserver.Request{User: "bob", Method: http.MethodPut, Path: path + "/a", Body: []byte(body)})
	got := server.Look("", "configmaps", "shop", "a")["metadata"].(map[string]any)["annotations"]
	if diff := cmp.Diff(map[string]any{"writer": "bob"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A policy sees a new object as it would be stored, however it is made, and nothing else.
func TestAPolicyRefusesNewObjectsAlone(t *testing.T) {
	server, c := newServer(t)
	var seen []string
	server.Admit(func(a apiserver.Attributes, made apiserver.Object) error {
		metadata, _ := made["metadata"].(map[string]any)
		seen = append(seen, fmt.Sprintf("%s %s %s made %v", a.User, a.Verb, a.Name, metadata["creationTimestamp"]))
		if strings.HasPrefix(a.Name, "bad") {
			return errors.New("it is bad")
		}
		return nil
	})
	service := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	}
	good := settings("good", "1")
	for name, answer := range map[string]error{
		"a creation": c.Create(t.Context(), settings("bad", "1")), "a dry run": c.Create(t.Context(), settings("bad-dry", "1"), client.DryRunAll),
		"an update that makes an object": c.Update(t.Context(), service("bad-put")),
	} {
		if !apierrors.IsForbidden(answer) || !strings.Contains(answer.Error(), "it is bad") {
			t.Errorf("%s = %v, want forbidden", name, answer)
		}
	}
	if err := errors.Join(c.Create(t.Context(), good), c.Update(t.Context(), good), c.Delete(t.Context(), good)); err != nil {
		t.Error(err)
	}
	slices.Sort(seen)
	stamp := " made " + epoch.Format(time.RFC3339)
	want := []string{"alice create bad" + stamp, "alice create bad-dry" + stamp, "alice create bad-put" + stamp, "alice create good" + stamp}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("the policy saw (-want +got):\n%s", diff)
	}
}
