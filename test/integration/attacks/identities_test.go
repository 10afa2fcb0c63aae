// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// maxUserBytes is how much of a user's name a Baseline holds.
const maxUserBytes = 1024

// somebody logs in with a client certificate, whose name may be anything.
func somebody(t testing.TB, name string, groups ...string) (*rest.Config, client.Client) {
	t.Helper()
	user, err := cluster.AddUser(envtest.User{Name: name, Groups: groups}, rest.CopyConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	return user.Config(), clientOf(t, user.Config())
}

// trustFriends trusts alice, the group ops, an account and a namespace of
// accounts: those whom an attacker would like to be taken for.
func trustFriends(g *v1alpha1.SpecGuard) {
	g.Spec.TrustedWriters.Users = []string{"alice"}
	g.Spec.TrustedWriters.Groups = []string{"ops"}
	g.Spec.TrustedWriters.ServiceAccountNamespaces = []string{"flux"}
}

// odd are names, and groups besides, of people who are nobody that is trusted.
var odd = map[string]struct {
	name   string
	groups []string
}{
	"a space behind a name":                        {name: "alice "},
	"another case":                                 {name: "Alice"},
	"a letter of another alphabet":                 {name: "аlice"}, // Cyrillic
	"a hidden character":                           {name: "alice\u200b"},
	"a combining mark":                             {name: "alice\u0301"},
	"a name that reads backwards":                  {name: "\u202eecila"},
	"an escape sequence":                           {name: "alice\x1b[2J\x1b]0;pwned\a"},
	"a second line":                                {name: "alice\nWarning: all is well"},
	"a carriage return":                            {name: "mallory\ralice"},
	"a C1 control":                                 {name: "alice\u009b31m"},
	"a NUL":                                        {name: "alice\x00"},
	"a comma":                                      {name: "alice,ops"},
	"quotes":                                       {name: `alice","groups":["ops"],"x":"`},
	"a template":                                   {name: "{{.Alice}}%s%n$(id)`id`"},
	"markup":                                       {name: "<script>alert(1)</script>"},
	"longer than a Baseline holds":                 {name: strings.Repeat("a", 1500)},
	"longer, in characters of several bytes":       {name: strings.Repeat("é漢😀", 300)},
	"the administrators, as a user":                {name: "system:masters"},
	"all accounts, as a user":                      {name: "system:serviceaccounts"},
	"the accounts of a namespace, as a user":       {name: "system:serviceaccounts:flux"},
	"an account with a part too many":              {name: "system:serviceaccount:flux:a:b"},
	"the trusted account, with a part too many":    {name: "system:serviceaccount:ci:deployer:x"},
	"an account without a name":                    {name: "system:serviceaccount:flux:"},
	"an account without a namespace":               {name: "system:serviceaccount::flux"},
	"an account of a namespace that begins alike":  {name: "system:serviceaccount:flux-2:a"},
	"the trusted account in capitals":              {name: "SYSTEM:SERVICEACCOUNT:CI:DEPLOYER"},
	"the trusted account with a slash":             {name: "system:serviceaccount:ci/deployer"},
	"the trusted account with a full-width colon":  {name: "system：serviceaccount：ci：deployer"},
	"the assessor's own name without its prefix":   {name: "plumbline-assessor"},
	"a group with a comma":                         {name: "m1", groups: []string{"ops,devs", "devs,ops"}},
	"a group in another case":                      {name: "m2", groups: []string{"OPS", "ops "}},
	"a group that holds a trusted user's name":     {name: "m3", groups: []string{"alice"}},
	"the accounts of a namespace, without account": {name: "m4", groups: []string{"devs"}},
	"a star": {name: "*"},
}

// S12: each is a stranger, is named as he is, and is shown as text.
func TestNobodyIsTrustedForAnOddNameAndEverybodyIsNamedExactly(t *testing.T) {
	p := newPlace(t)
	p.guard(trustFriends)
	number := 0
	for what, who := range odd {
		number++
		object := fmt.Sprintf("web-%d", number)
		t.Run(what, func(t *testing.T) {
			p := &place{t: t, namespace: p.namespace}
			_, c := somebody(t, who.name, append([]string{roots}, who.groups...)...)
			p.deploy(object)
			p.setImage(c, object, "registry.example/evil:1")
			if got := p.live(object).Annotations[v1alpha1.AnnotationWriter]; got != who.name {
				t.Errorf("the stamp is %q", got)
			}
			b := p.untilIs(object, "Drifted: Changed "+imagePath+" by "+diff.TruncateText(who.name, maxUserBytes)+" (Untrusted, WriterStamp)")
			if b.Spec.Authorized.Number != 1 {
				t.Errorf("revision %d is authorized", b.Spec.Authorized.Number)
			}
			p.printsSafely("deployment/"+object, "status", "blame", "diff")
		})
	}
	p.printsSafely("", "status")
	p.tellsSafely()
}

// printsSafely runs commands of the plugin, and looks for what would move the
// terminal or hide in it.
func (p *place) printsSafely(target string, commands ...string) {
	p.t.Helper()
	for _, command := range commands {
		for _, output := range []string{"", "wide", "json"} {
			args := []string{command}
			if target != "" {
				args = append(args, target)
			}
			if output != "" && (command != "diff" || output != "wide") && (command != "status" || output != "json") {
				args = append(args, "-o", output)
			}
			stdout, stderr, _ := p.plugin("auditor", []string{roots}, args...)
			if i := strings.IndexFunc(stdout+stderr, unsafe); i >= 0 || stdout == "" {
				p.t.Errorf("%q prints %q", args, stdout+stderr)
			}
		}
	}
}

func unsafe(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }

// tellsSafely looks at the events of the namespace and at what the processes log.
func (p *place) tellsSafely() {
	p.t.Helper()
	var events eventsv1.EventList
	p.must(admin.List(p.t.Context(), &events, client.InNamespace(p.namespace)))
	if len(events.Items) == 0 {
		p.t.Error("there are no events")
	}
	for i := range events.Items {
		if note := events.Items[i].Note; strings.ContainsFunc(note, func(r rune) bool { return !unicode.IsPrint(r) }) {
			p.t.Errorf("the event %s says %q", events.Items[i].Reason, note)
		}
	}
	for name, said := range map[string]string{"webhook": hook.Said(), "assessor": judge.Said()} {
		if strings.ContainsFunc(said, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
			p.t.Errorf("the log of the %s holds control characters", name)
		}
		for line := range strings.Lines(said) {
			if !strings.HasPrefix(line, "{") {
				p.t.Errorf("the %s logs a line that is no JSON: %q", name, line)
			}
		}
	}
}

// S12: without a name there is nobody who could write.
func TestAnEmptyNameIsNobody(t *testing.T) {
	p := newPlace(t)
	p.guard(trustFriends)
	p.deploy("web")
	for name, c := range map[string]*rest.Config{
		"a certificate without a name": func() *rest.Config { c, _ := somebody(t, "", roots, "ops"); return c }(),
		"no credentials":               {Host: config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData}},
		"groups without a user": func() *rest.Config {
			c := rest.CopyConfig(config)
			c.Impersonate = rest.ImpersonationConfig{Groups: []string{roots, "ops"}}
			return c
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := client.New(c, client.Options{Scheme: admin.Scheme(), Mapper: admin.RESTMapper()})
			if err != nil {
				return // refused already
			}
			if err := c.Patch(t.Context(), p.named("web"), guarded.ImagePatch("registry.example/evil:1")); err == nil {
				t.Error("the write was taken")
			} else if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
				t.Logf("refused with %v", err)
			}
		})
	}
	p.witness()
	p.untilIs("web", "InSync")
}

// S12: a uid and extra values that belong to a trusted account make nobody it.
func TestTheUIDAndTheExtraValuesOfATrustedUserCountForNothing(t *testing.T) {
	p := newPlace(t)
	p.guard(trustFriends)
	p.deploy("web")
	c := rest.CopyConfig(config)
	c.Impersonate = rest.ImpersonationConfig{
		UserName: mallory, Groups: []string{"system:authenticated", roots}, UID: "uid-of-alice",
		Extra: map[string][]string{
			"authentication.kubernetes.io/pod-name": {"deployer"}, "username": {"alice"}, "groups": {"ops"}, "original-user": {ci},
		},
	}
	p.setImage(clientOf(t, c), "web", "registry.example/evil:1")
	p.untilIs("web", "Drifted: Changed "+imagePath+" by mallory (Untrusted, WriterStamp)")
}

// S12: whom a request to accept names is who made it, however the name reads.
func TestNobodyAcceptsInANameThatOnlyLooksAlike(t *testing.T) {
	p := newPlace(t)
	p.guard(trustFriends)
	p.deploy("web")
	p.setImage(as(t, mallory), "web", "registry.example/evil:1")
	b := p.untilIs("web", "Drifted: Changed "+imagePath+" by mallory (Untrusted, WriterStamp)")
	for _, name := range []string{"alice ", "Alice", "аlice", "alice\u200b", "alice\n"} {
		_, c := somebody(t, name, roots)
		request := b.DeepCopy()
		request.Spec.Accept = &v1alpha1.AcceptRequest{Hash: b.Status.Observed.Hash, RequestedBy: "alice"}
		if err := c.Update(t.Context(), request); !apierrors.IsForbidden(err) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
