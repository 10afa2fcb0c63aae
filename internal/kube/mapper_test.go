// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	testclock "k8s.io/utils/clock/testing"
)

// served plays the discovery of an API server.
type served struct {
	kinds   map[string][]string // by group/version
	failure error
	listed  int
	// onList is called during a listing.
	onList func()
}

func (s *served) ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	s.listed++
	if s.onList != nil {
		s.onList()
	}
	var partly *discovery.ErrGroupDiscoveryFailed
	if s.failure != nil && !errors.As(s.failure, &partly) {
		return nil, nil, s.failure
	}
	var groups []*metav1.APIGroup
	var lists []*metav1.APIResourceList
	for text, kinds := range s.kinds {
		gv, err := schema.ParseGroupVersion(text)
		if err != nil {
			return nil, nil, err
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: text, Version: gv.Version}
		if i := slices.IndexFunc(groups, func(g *metav1.APIGroup) bool { return g.Name == gv.Group }); i >= 0 {
			groups[i].Versions = append(groups[i].Versions, version)
		} else {
			groups = append(groups, &metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		}
		if partly != nil && partly.Groups[gv] != nil {
			continue
		}
		list := &metav1.APIResourceList{GroupVersion: text}
		for _, kind := range kinds {
			if plural, sub, ok := strings.Cut(kind, "/"); ok {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural + "s/" + sub, Kind: sub, Namespaced: true})
				continue
			}
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: kind + "s", SingularName: kind, Kind: kind, Namespaced: true})
		}
		lists = append(lists, list)
	}
	return groups, lists, s.failure
}

type mapperFixture struct {
	*Mapper
	server *served
	clock  *testclock.FakeClock
}

func newMapperFixture() *mapperFixture {
	f := &mapperFixture{
		server: &served{kinds: map[string][]string{"v1": {"pod"}, "apps/v1": {"deployment"}}},
		clock:  testclock.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
	}
	f.Mapper = NewMapper(f.server, f.clock)
	return f
}

func (f *mapperFixture) mapping(apiVersion, kind string) error {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return err
	}
	_, err = f.RESTMapping(gv.WithKind(kind).GroupKind(), gv.Version)
	return err
}

// H2 of the guard's review: each kind that nobody serves cost a call of its own, each
// time.
func TestThousandsOfUnknownKindsCostOneListing(t *testing.T) {
	f := newMapperFixture()
	for round := range 100 {
		for i := range 32 {
			if err := f.mapping(fmt.Sprintf("x%d.example.com/v1", round*32+i), "Nothing"); !meta.IsNoMatchError(err) {
				t.Fatal(err)
			}
		}
	}
	if err := f.mapping("apps/v1", "deployment"); err != nil {
		t.Error(err)
	}
	if f.server.listed > 2 {
		t.Errorf("%d listings", f.server.listed)
	}
	f.clock.Step(time.Hour)
	before := f.server.listed
	for range 3600 {
		_ = f.mapping("x.example.com/v1", "Nothing")
		f.clock.Step(time.Second)
	}
	if n := f.server.listed - before; n > 3600/int(maxListInterval/time.Second)+8 {
		t.Errorf("%d listings in an hour", n)
	}
}

func TestAKindThatAppearsIsFound(t *testing.T) {
	f := newMapperFixture()
	unknown := func(want bool) {
		t.Helper()
		if err := f.mapping("example.org/v1", "widget"); meta.IsNoMatchError(err) != want || err != nil != want {
			t.Fatal(err)
		}
	}
	unknown(true)
	f.server.kinds["example.org/v1"] = []string{"widget"}
	unknown(true) // asked too soon
	f.clock.Step(maxListInterval)
	unknown(false)
}

// Discovery that hangs, and a tenant's unknown kinds: each of them would wait in turn.
func TestAListingThatFailsCountsForTheInterval(t *testing.T) {
	f := newMapperFixture()
	if err := f.mapping("apps/v1", "deployment"); err != nil {
		t.Fatal(err)
	}
	f.server.failure = errors.New("timeout")
	f.clock.Step(maxListInterval)
	before := f.server.listed
	for i := range 2000 {
		if err := f.mapping(fmt.Sprintf("x%d.example.com/v1", i), "Nothing"); !errors.Is(err, ErrKindsNotListed) || meta.IsNoMatchError(err) {
			t.Fatalf("an unknown kind while the server does not answer: %v", err)
		}
	}
	if err := f.mapping("apps/v1", "deployment"); err != nil {
		t.Errorf("a known kind: %v", err)
	}
	if n := f.server.listed - before; n != 1 {
		t.Errorf("%d listings", n)
	}
}

// An executor's write must not wait while a tenant's unknown kind is looked for.
func TestAKnownKindDoesNotWaitForAListing(t *testing.T) {
	f := newMapperFixture()
	if err := f.mapping("apps/v1", "deployment"); err != nil {
		t.Fatal(err)
	}
	f.clock.Step(maxListInterval)
	listing, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	f.server.onList = func() { close(listing); <-goOn }
	go func() { ended <- f.mapping("x.example.com/v1", "Nothing") }()
	<-listing
	if err := f.mapping("apps/v1", "deployment"); err != nil {
		t.Errorf("during a listing: %v", err)
	}
	close(goOn)
	if err := <-ended; !meta.IsNoMatchError(err) {
		t.Errorf("the unknown kind: %v", err)
	}
}

func TestWhatIsListedIsAnsweredWithoutACall(t *testing.T) {
	f := newMapperFixture()
	find := func(apiVersion, kind string) error {
		gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
		_, err := f.FindListed(gvk.GroupKind(), gvk.Version)
		return err
	}
	if err := find("apps/v1", "deployment"); !errors.Is(err, errNotListed) {
		t.Errorf("before the first listing: %v", err)
	}
	if !f.Refresh() {
		t.Error("the first listing is not told")
	}
	f.server.kinds["example.org/v1"] = []string{"widget"}
	f.clock.Step(maxListInterval)
	if err := find("apps/v1", "deployment"); err != nil {
		t.Errorf("a kind that is listed: %v", err)
	}
	if err := find("example.org/v1", "widget"); !meta.IsNoMatchError(err) || f.server.listed != 1 {
		t.Errorf("a kind that is not listed: %v after %d listings", err, f.server.listed)
	}
	if !f.Refresh() || f.Refresh() {
		t.Error("a second listing is not told, or a third one is told")
	}
	if err := find("example.org/v1", "widget"); err != nil || f.server.listed != 2 {
		t.Errorf("a kind that is listed by now: %v after %d listings", err, f.server.listed)
	}
}

func TestWhatTheServerCannotTellIsNotUnknown(t *testing.T) {
	f := newMapperFixture()
	f.server.failure = errors.New("connection refused")
	if err := f.mapping("apps/v1", "deployment"); err == nil || meta.IsNoMatchError(err) || errors.Is(err, ErrKindsNotListed) {
		t.Errorf("the server is away: %v", err)
	}
	f.server.failure = nil
	f.clock.Step(minListInterval)
	f.server.kinds["metrics.example.com/v1"] = []string{"metric"}
	if err := f.mapping("metrics.example.com/v1", "metric"); err != nil {
		t.Fatal(err)
	}
	stale := schema.GroupVersion{Group: "metrics.example.com", Version: "v1"}
	f.server.failure = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{stale: errors.New("stale")}}
	f.clock.Step(maxListInterval)
	if err := f.mapping("x.example.com/v1", "Nothing"); !meta.IsNoMatchError(err) {
		t.Errorf("an unknown kind beside a group that does not answer: %v", err)
	}
	if err := f.mapping("metrics.example.com/v1", "metric"); err != nil {
		t.Errorf("a kind that was known before: %v", err)
	}
	other := newMapperFixture()
	other.server.kinds["metrics.example.com/v1"] = []string{"metric"}
	other.server.failure = f.server.failure
	if err := other.mapping("metrics.example.com/v1", "metric"); !errors.Is(err, ErrGroupUnavailable) {
		t.Errorf("a kind of a group that never answered: %v", err)
	}
}

func (f *mapperFixture) scaleIs(t *testing.T, group, resource string, served, known bool) {
	t.Helper()
	gotServed, gotKnown := f.ServesScale(schema.GroupResource{Group: group, Resource: resource})
	if gotServed != served || gotKnown != known {
		t.Errorf("/scale of %s.%s: served %t, known %t", resource, group, gotServed, gotKnown)
	}
}

func TestWhetherAKindHasScaleIsAskedOfAllItsVersions(t *testing.T) {
	f := newMapperFixture()
	f.server.kinds["apps/v1"] = []string{"deployment", "deployment/scale", "deployment/status", "daemonset"}
	f.server.kinds["pools.k8s.io/v1"] = []string{"pool", "pool/status"}
	f.server.kinds["pools.k8s.io/v1beta1"] = []string{"pool", "pool/scale"}
	f.scaleIs(t, "apps", "deployments", true, true)
	f.scaleIs(t, "apps", "daemonsets", false, true)
	f.scaleIs(t, "pools.k8s.io", "pools", true, true)
	f.scaleIs(t, "apps", "nothings", false, false)
	f.scaleIs(t, "nobody.example.com", "nothings", false, false)
}

func TestAKindThatGainsScaleIsSeenAfterTheInterval(t *testing.T) {
	f := newMapperFixture()
	f.server.kinds["example.org/v1"] = []string{"pool"}
	f.scaleIs(t, "example.org", "pools", false, true)
	f.server.kinds["example.org/v1"] = []string{"pool", "pool/scale"}
	f.clock.Step(maxListInterval)
	f.scaleIs(t, "example.org", "pools", true, true)
	before := f.server.listed
	for range 3600 {
		f.clock.Step(time.Second)
		f.scaleIs(t, "example.org", "pools", true, true)
	}
	if n := f.server.listed - before; n > 0 {
		t.Errorf("%d listings for an answer that is on the safe side", n)
	}
}

func TestAnOldAnswerThatAKindHasNoScaleIsNotBelieved(t *testing.T) {
	f := newMapperFixture()
	f.scaleIs(t, "apps", "deployments", false, true)
	f.clock.Step(maxListInterval)
	f.server.failure = errors.New("timeout")
	f.scaleIs(t, "apps", "deployments", false, false)
	stale := schema.GroupVersion{Group: "apps", Version: "v1"}
	f.server.failure = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{stale: errors.New("stale")}}
	f.clock.Step(maxListInterval)
	f.scaleIs(t, "apps", "deployments", false, false)
	f.scaleIs(t, "", "pods", false, true)
	f.server.failure = nil
	f.clock.Step(maxListInterval)
	f.scaleIs(t, "apps", "deployments", false, true)
}

func TestMapperAnswersEachQuestionOfAMapper(t *testing.T) {
	f := newMapperFixture()
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "deployment"}
	gvr := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	if got, err := f.KindFor(gvr); err != nil || got != gvk {
		t.Errorf("KindFor: %v, %v", got, err)
	}
	if got, err := f.KindsFor(gvr); err != nil || len(got) != 1 || got[0] != gvk {
		t.Errorf("KindsFor: %v, %v", got, err)
	}
	if got, err := f.ResourceFor(gvr); err != nil || got != gvr {
		t.Errorf("ResourceFor: %v, %v", got, err)
	}
	if got, err := f.ResourcesFor(gvr); err != nil || len(got) != 1 || got[0] != gvr {
		t.Errorf("ResourcesFor: %v, %v", got, err)
	}
	if got, err := f.RESTMappings(gvk.GroupKind()); err != nil || len(got) != 1 || got[0].Resource != gvr {
		t.Errorf("RESTMappings: %v, %v", got, err)
	}
	if got, err := f.ResourceSingularizer("deployments"); err != nil || got != "deployment" {
		t.Errorf("ResourceSingularizer: %q, %v", got, err)
	}
}
