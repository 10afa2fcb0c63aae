// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// acceptedBy has somebody accept what runs, after alice changed the image under two
// guards: one of the platform, which lets only these accept, and one of the tenant.
func acceptedBy(t *testing.T, acceptBy *v1alpha1.Writers, request v1alpha1.AcceptRequest, change func(*Guard) *Guard, absent bool) *world {
	t.Helper()
	w := newWorld(t)
	compile := func(ref GuardRef) *Guard {
		spec := testGuardSpec()
		spec.Resources = deployments
		g, errs := Compile(ref, spec, nil, testNow)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		return g
	}
	platform, _ := compile(GuardRef{Name: "platform"}).WithAcceptBy(acceptBy)
	w.guards = []*Guard{platform, compile(GuardRef{Namespace: "shop", Name: "mine"})}
	w.rule()
	w.now = w.now.Add(time.Minute)
	w.create(write{user: user("ci")}, testDeployment)
	w.observe(false, false)
	if absent {
		w.remove(write{user: user("alice")})
	} else {
		w.update(write{user: user("alice"), manager: "pipeline", applies: true, changes: parseChanges(t, w.live.Body, w.gvk, imagePath+` = "registry.example/other:1"`)})
	}
	w.observe(false, false)
	if change != nil {
		w.guards[0] = change(platform)
		w.rule()
	}
	w.effects = nil
	request.Hash = w.state.Observed.Hash
	if absent {
		w.step(Absent{SeenAt: w.now}, &request)
	} else {
		w.step(Present{Version: w.live, UID: w.uidText(), CreatedAt: w.createdAt, SeenAt: w.now}, &request)
	}
	return w
}

// M5 of the guard's review: a tenant's admin made a change and accepted it.
func TestOnlyThoseWhomAClusterSpecGuardNamesAccept(t *testing.T) {
	boss := &v1alpha1.Writers{
		Users: []string{"boss"}, Groups: []string{"platform"},
		ServiceAccounts:          []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "approver"}},
		ServiceAccountNamespaces: []string{"ops"},
	}
	by := func(user string, groups ...string) v1alpha1.AcceptRequest {
		return v1alpha1.AcceptRequest{RequestedBy: user, RequestedByGroups: groups}
	}
	suspended := func(g *Guard) *Guard {
		s := *g
		s.suspendedUntil = testNow.Add(time.Hour)
		return &s
	}
	inert := func(g *Guard) *Guard {
		i, _ := CompileInert(g.ref, v1alpha1.GuardSpec{Resources: deployments, Mode: "Mystery"}, nil, testNow).WithAcceptBy(boss)
		return i
	}
	tests := map[string]struct {
		acceptBy *v1alpha1.Writers
		request  v1alpha1.AcceptRequest
		change   func(*Guard) *Guard
		absent   bool
		accepted bool
	}{
		"no guard says who may":                               {request: by("tenant-admin"), accepted: true},
		"the named user":                                      {acceptBy: boss, request: by("boss"), accepted: true},
		"a user who names a group":                            {acceptBy: boss, request: by("carol", "developers", "platform"), accepted: true},
		"the named service account":                           {acceptBy: boss, request: by("system:serviceaccount:ci:approver"), accepted: true},
		"a service account of the named namespace":            {acceptBy: boss, request: by("system:serviceaccount:ops:bot"), accepted: true},
		"another service account":                             {acceptBy: boss, request: by("system:serviceaccount:ci:deployer")},
		"the tenant's admin":                                  {acceptBy: boss, request: by("tenant-admin", "developers")},
		"the tenant's admin while the guard is suspended":     {acceptBy: boss, request: by("tenant-admin"), change: suspended},
		"the named user while the guard is suspended":         {acceptBy: boss, request: by("boss"), change: suspended, accepted: true},
		"the tenant's admin while the guard does not compile": {acceptBy: boss, request: by("tenant-admin"), change: inert},
		"the tenant's admin, that the object is gone":         {acceptBy: boss, request: by("tenant-admin"), absent: true},
		"the named user, that the object is gone":             {acceptBy: boss, request: by("boss"), absent: true, accepted: true},
		"a list that nobody is in":                            {acceptBy: &v1alpha1.Writers{}, request: by("tenant-admin")},
		"a list that does not compile": {
			acceptBy: &v1alpha1.Writers{Users: []string{"tenant-admin", ""}}, request: by("tenant-admin"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := acceptedBy(t, tc.acceptBy, tc.request, tc.change, tc.absent)
			accepted := w.state.Drift == v1alpha1.StateRetired || w.state.Drift == v1alpha1.StateInSync && w.state.Authorized.Number == 2
			moved := !w.state.RetiredAt.IsZero() || w.state.Authorized.Number != 1
			report := w.report()
			if accepted != tc.accepted || moved != tc.accepted {
				t.Errorf("accepted %t: %s", accepted, report)
			}
			if !strings.Contains(report, "effect: clear accept") {
				t.Errorf("the request is left lying there: %s", report)
			}
			refused := strings.Contains(report, "Warning AcceptanceRefused: "+tc.request.RequestedBy+" may not accept: ClusterSpecGuard/platform lets only these accept: ")
			if refused == tc.accepted {
				t.Errorf("refused with a reason: %t, want %t: %s", refused, !tc.accepted, report)
			}
		})
	}
}

// A writer with the right to accept made a change and accepted it, and one pair of eyes saw it.
func TestUnderTwoPersonsTheWriterOfAChangeDoesNotAcceptIt(t *testing.T) {
	by := func(user string) v1alpha1.AcceptRequest { return v1alpha1.AcceptRequest{RequestedBy: user} }
	with := func(value v1alpha1.Permission) func(*Guard) *Guard {
		return func(g *Guard) *Guard { return g.WithAcceptByAuthor(value) }
	}
	inert := func(g *Guard) *Guard {
		return CompileInert(g.ref, v1alpha1.GuardSpec{Resources: deployments, Mode: "Mystery"}, nil, testNow).WithAcceptByAuthor(v1alpha1.Forbidden)
	}
	suspended := func(g *Guard) *Guard {
		s := *g.WithAcceptByAuthor(v1alpha1.Forbidden)
		s.suspendedUntil = testNow.Add(time.Hour)
		return &s
	}
	for name, tc := range map[string]struct {
		request  v1alpha1.AcceptRequest
		change   func(*Guard) *Guard
		absent   bool
		accepted bool
	}{
		"the writer, where the guard says nothing":       {by("alice"), with(""), false, true},
		"the writer, where the guard allows it":          {by("alice"), with(v1alpha1.Allowed), false, true},
		"the writer":                                     {by("alice"), with(v1alpha1.Forbidden), false, false},
		"another user":                                   {by("bob"), with(v1alpha1.Forbidden), false, true},
		"the writer, by a word of tomorrow":              {by("alice"), with("Sometimes"), false, false},
		"the writer, while the guard is suspended":       {by("alice"), suspended, false, false},
		"the writer, while the guard does not compile":   {by("alice"), inert, false, false},
		"another user, while the guard does not compile": {by("bob"), inert, false, true},
		"the writer, that the object is gone":            {by("alice"), with(v1alpha1.Forbidden), true, false},
		"another user, that the object is gone":          {by("bob"), with(v1alpha1.Forbidden), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := acceptedBy(t, nil, tc.request, tc.change, tc.absent)
			accepted := w.state.Drift == v1alpha1.StateRetired || w.state.Drift == v1alpha1.StateInSync && w.state.Authorized.Number == 2
			if report := w.report(); accepted != tc.accepted || !tc.accepted && !strings.Contains(report, "lets no writer accept a change of their own: alice has written") {
				t.Errorf("accepted %t: %s", accepted, report)
			}
		})
	}
}

func TestAWriterThatIsNotKnownMayBeTheOneWhoAccepts(t *testing.T) {
	finding := func(user string, class v1alpha1.ActorClass) v1alpha1.Finding {
		return v1alpha1.Finding{Path: "/spec/replicas", Actor: v1alpha1.Actor{User: user, Class: class}}
	}
	for name, tc := range map[string]struct {
		findings []v1alpha1.Finding
		total    int
		want     string
	}{
		"without findings":                         {nil, 0, ""},
		"others have written":                      {[]v1alpha1.Finding{finding("alice", v1alpha1.ActorUntrusted), finding("ci", v1alpha1.ActorTrusted)}, 2, ""},
		"the second finding is theirs":             {[]v1alpha1.Finding{finding("alice", v1alpha1.ActorUntrusted), finding("bob", v1alpha1.ActorUntrusted)}, 2, "bob has written /spec/replicas"},
		"a writer without a name":                  {[]v1alpha1.Finding{finding("", v1alpha1.ActorUnknown)}, 1, "the writer of /spec/replicas is not known"},
		"a name that is not proved":                {[]v1alpha1.Finding{finding("alice", v1alpha1.ActorUnknown)}, 1, "the writer of /spec/replicas is not known"},
		"findings that the status has no room for": {[]v1alpha1.Finding{finding("alice", v1alpha1.ActorUntrusted)}, 70, "not all findings have their writers in the status"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := findOwn("bob", tc.findings, tc.total); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestARefusalNamesWhoMay(t *testing.T) {
	w := acceptedBy(t, &v1alpha1.Writers{Users: []string{"boss", strings.Repeat("x", 1024)}, Groups: []string{"platform"}},
		v1alpha1.AcceptRequest{RequestedBy: "tenant-admin"}, nil, false)
	var why string
	for _, e := range w.effects {
		if r, ok := e.(RefuseAccept); ok {
			why = r.Why
		}
	}
	if !strings.Contains(why, "boss") || !strings.Contains(why, "group platform") || len(why) > maxMessageBytes {
		t.Errorf("%d bytes: %s", len(why), why)
	}
}
