// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Bounds of the API (see the kinds).
const (
	maxAccounts = 64
	maxExpected = 16
)

// The fields of a guard to which something may be added.
const (
	fieldAccounts = "trustedWriters.serviceAccounts"
	fieldExpected = "expectedWriters"
)

// Candidates are the service accounts whose existence decides what is proposed,
// sorted.
func (s *Survey) Candidates() []v1alpha1.ServiceAccountReference {
	wanted := map[v1alpha1.ServiceAccountReference]bool{}
	for key := range s.writers {
		if a, ok := accountOf(key.user); ok {
			wanted[a] = true
		}
		if tool, ok := deployers[key.manager]; ok {
			wanted[tool.account] = true
		}
	}
	for _, found := range s.autoscaled {
		if a, ok := scalerAccount(found.Autoscaler); ok {
			wanted[a] = true
		}
	}
	return slices.SortedFunc(maps.Keys(wanted), compareAccounts)
}

func compareAccounts(a, b v1alpha1.ServiceAccountReference) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func scalerAccount(kind AutoscalerKind) (v1alpha1.ServiceAccountReference, bool) {
	switch kind {
	case HorizontalPodAutoscaler:
		return autoscalerAccount, true
	case ScaledObject:
		return keda.account, true
	case VerticalPodAutoscaler:
		return v1alpha1.ServiceAccountReference{}, false
	default:
		return v1alpha1.ServiceAccountReference{}, false
	}
}

// proposal is a draft on its way.
type proposal struct {
	draft     Draft
	reasons   []Reason
	undecided []Undecided
	// why the service accounts are trusted, one or more reasons each.
	trusted map[v1alpha1.ServiceAccountReference][]string
}

func (s *Survey) propose(accounts Accounts) *proposal {
	p := &proposal{draft: s.question.Draft, undecided: []Undecided{}, reasons: []Reason{}, trusted: map[v1alpha1.ServiceAccountReference][]string{}}
	if !p.draft.Existing {
		p.draft.Spec.Mode = v1alpha1.GuardModeAudit
	}
	for _, key := range s.sortedWriters() {
		s.decide(p, key, s.writers[key], accounts)
	}
	p.addTrusted()
	s.proposeScaler(p, HorizontalPodAutoscaler, "autoscaler", accounts)
	s.proposeScaler(p, ScaledObject, "keda", accounts)
	slices.SortStableFunc(p.undecided, func(a, b Undecided) int {
		return cmp.Or(cmp.Compare(a.User, b.User), slices.Compare(a.Managers, b.Managers), cmp.Compare(a.Why, b.Why))
	})
	return p
}

func (s *Survey) sortedWriters() []writerKey {
	return slices.SortedFunc(maps.Keys(s.writers), func(a, b writerKey) int {
		return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(a.manager, b.manager))
	})
}

// decide says of one writer whether it is trusted.
func (s *Survey) decide(p *proposal, key writerKey, w *writer, accounts Accounts) {
	if class, _ := s.rules.ClassifyAt(w.identity, canon.Path{}); class == v1alpha1.ActorTrusted {
		return // by the draft
	}
	if w.benignOnly || w.scaleOnly && s.isScaler(key) {
		return
	}
	account, why := s.suggest(key, accounts)
	if why == "" {
		why = s.findDoubt(account, w)
	}
	if why != "" {
		why += s.sharers(key)
		p.undecided = append(p.undecided, w.undecided(key, why))
		return
	}
	if class, _ := s.rules.ClassifyAt(specguard.Identity{User: userOf(account)}, canon.Path{}); class == v1alpha1.ActorTrusted {
		return
	}
	_, again := p.trusted[account]
	if !again && len(p.draft.Spec.TrustedWriters.ServiceAccounts)+len(p.trusted) >= maxAccounts {
		p.undecided = append(p.undecided, w.undecided(key, fmt.Sprintf("the guard names %d service accounts already", maxAccounts)))
		return
	}
	p.trusted[account] = append(p.trusted[account], w.evidence(key))
}

// findDoubt tells why the writes of an account are not enough to trust the account: a
// tenant may own it, or a person may use it.
func (s *Survey) findDoubt(account v1alpha1.ServiceAccountReference, w *writer) string {
	if s.mayGuard(account.Namespace) {
		return fmt.Sprintf("the guard covers its namespace %s: users that may make accounts or pods there may write as it", account.Namespace)
	}
	if i := slices.IndexFunc(w.managers, LooksHuman); i >= 0 {
		return fmt.Sprintf("it wrote with %s, a program that people write with: if only a pipeline uses this account, name it", w.managers[i])
	}
	return ""
}

// mayGuard tells whether the draft covers a namespace, or may do so, because
// nothing is known of its labels.
func (s *Survey) mayGuard(namespace string) bool {
	d := &s.question.Draft
	labels, known := s.question.NamespaceLabels[namespace]
	if d.Kind == ClusterSpecGuard && d.Spec.NamespaceSelector != nil && !known {
		return !s.excluded[namespace]
	}
	return slices.ContainsFunc(specguard.ListResources(&d.Spec.GuardSpec), func(r specguard.NamedResource) bool {
		return !s.draft.Rules(specguard.Query{
			Namespace: namespace, NamespaceLabels: labels, GVK: canon.ParseGVK(r.APIVersion, r.Kind), LabelsUnknown: true, Now: s.question.Now,
		}).Empty()
	})
}

// sharers names the users who are known to write with the same field manager:
// a hint for whoever decides, and no more.
func (s *Survey) sharers(key writerKey) string {
	var users []string
	for other, w := range s.writers {
		if key.user == "" && other.user != "" && slices.Contains(w.managers, key.manager) {
			users = append(users, other.user)
		}
	}
	if len(users) == 0 {
		return ""
	}
	slices.Sort(users)
	return "; with it writes " + strings.Join(users[:min(len(users), maxSharers)], ", ")
}

// maxSharers are named of those who write with one field manager.
const maxSharers = 3

// isScaler tells whether a manager that only scales is one of the autoscalers,
// which are proposed as expected writers.
func (s *Survey) isScaler(key writerKey) bool {
	has := func(kind AutoscalerKind) bool {
		return slices.ContainsFunc(s.autoscaled, func(a Autoscaled) bool { return a.Autoscaler == kind && len(a.Paths) > 0 })
	}
	return key.manager == managerHPA && has(HorizontalPodAutoscaler) || kedaManagers[key.manager] && has(ScaledObject)
}

// suggest gives the account to trust, or why there is none to suggest.
func (s *Survey) suggest(key writerKey, accounts Accounts) (account v1alpha1.ServiceAccountReference, why string) {
	if key.user != "" {
		return suggestUser(key.user, accounts)
	}
	tool, ok := deployers[key.manager]
	name := tool.account.Namespace + "/" + tool.account.Name
	switch {
	case ok && accounts[tool.account] == Exists:
		return tool.account, ""
	case ok && accounts[tool.account] == Absent:
		return account, fmt.Sprintf("the manager of %s; its usual service account %s does not exist: name its real one", tool.tool, name)
	case ok:
		return account, fmt.Sprintf("the manager of %s; whether its usual service account %s exists could not be read", tool.tool, name)
	case key.manager == others:
		return account, fmt.Sprintf("beyond the %d writers that are told apart", maxWriters)
	case key.manager == managerHelm:
		return account, "an unknown user of helm, a pipeline or a person: if it is a pipeline, name its service account or user"
	case key.manager == managerBefore:
		return account, "fields from before writers were recorded"
	case key.manager == managerHPA:
		return account, "the cluster's own controllers"
	case LooksHuman(key.manager):
		return account, "a program that people write with: if a pipeline runs it, name its service account or user"
	default:
		return account, "no known controller: if it is an operator of yours, name its service account"
	}
}

func suggestUser(user string, accounts Accounts) (account v1alpha1.ServiceAccountReference, why string) {
	account, ok := accountOf(user)
	switch {
	case !ok && strings.HasPrefix(user, "system:"):
		return account, "an identity of the cluster itself"
	case !ok:
		return account, "a user: a person, or a pipeline that is no service account"
	case account.Namespace == "kube-system":
		return account, "a service account of the cluster itself"
	case account.Name == "default":
		return account, "every pod of its namespace that names no other service account has this one"
	}
	switch accounts[account] {
	case Exists:
		return account, ""
	case Absent:
		return account, "this service account does not exist any more"
	case ExistenceUnknown:
	}
	return account, "whether this service account exists could not be read"
}

func (w *writer) undecided(key writerKey, why string) Undecided {
	u := Undecided{User: key.user, Managers: w.managers, Objects: w.objects, Recent: w.recent, Last: timeOf(w.last), Why: why}
	if key.manager == others {
		u.Managers = []string{others}
	}
	u.Human = slices.ContainsFunc(u.Managers, LooksHuman)
	return u
}

// evidence says what speaks for a writer.
func (w *writer) evidence(key writerKey) string {
	source := "writer stamp"
	if key.user == "" {
		source = deployers[key.manager].tool + "'s field manager; a manager is evidence, not proof"
	}
	return fmt.Sprintf("wrote %s%s (%s)", plural.Of(w.objects, "object"), lastTime(w.last), source)
}

func lastTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", last " + t.UTC().Format(time.RFC3339)
}

func (p *proposal) addTrusted() {
	if len(p.trusted) == 0 {
		return
	}
	given := &p.draft.Spec.TrustedWriters
	list := slices.Clone(given.ServiceAccounts)
	for _, a := range slices.SortedFunc(maps.Keys(p.trusted), compareAccounts) {
		list = append(list, a)
		p.reasons = append(p.reasons, Reason{
			Field: fieldAccounts, Value: a.Namespace + "/" + a.Name, Why: strings.Join(p.trusted[a], "; "),
		})
	}
	slices.SortStableFunc(list, compareAccounts)
	given.ServiceAccounts = list
}

// proposeScaler expects an autoscaler at the replicas of its targets.
func (s *Survey) proposeScaler(p *proposal, kind AutoscalerKind, rule string, accounts Accounts) {
	targets := 0
	for _, a := range s.autoscaled {
		if a.Autoscaler == kind && len(a.Paths) > 0 {
			targets++
		}
	}
	account, ok := scalerAccount(kind)
	if targets == 0 || !ok || s.letsScale(account) {
		return
	}
	why := ""
	switch {
	case accounts[account] == Absent:
		why = fmt.Sprintf("the usual service account of %ss does not exist: if yours acts under another one, name that in expectedWriters", kind)
	case accounts[account] == ExistenceUnknown:
		why = fmt.Sprintf("whether the usual service account of %ss exists could not be read", kind)
	case len(p.draft.Spec.ExpectedWriters) >= maxExpected:
		why = fmt.Sprintf("the guard has %d expected writers already", maxExpected)
	}
	if why != "" {
		p.undecided = append(p.undecided, Undecided{User: userOf(account), Managers: []string{}, Objects: targets, Why: why})
		return
	}
	p.draft.Spec.ExpectedWriters = append(slices.Clone(p.draft.Spec.ExpectedWriters), v1alpha1.ExpectedWriter{
		Name: freeName(rule, p.draft.Spec.ExpectedWriters), Paths: []string{replicasPath},
		Writers: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{account}},
	})
	p.reasons = append(p.reasons, Reason{
		Field: fieldExpected, Value: p.draft.Spec.ExpectedWriters[len(p.draft.Spec.ExpectedWriters)-1].Name,
		Why: fmt.Sprintf("%ss name %s as their targets; the rule leaves this one field to them", kind, plural.Of(targets, "object")),
	})
}

// letsScale tells whether the draft already leaves the replicas to an account.
func (s *Survey) letsScale(account v1alpha1.ServiceAccountReference) bool {
	path, _ := canon.NewPath(canon.Field("spec"), canon.Field("replicas"))
	class, _ := s.rules.ClassifyAt(specguard.Identity{User: userOf(account)}, path)
	return class == v1alpha1.ActorTrusted || class == v1alpha1.ActorExpected
}

func freeName(name string, taken []v1alpha1.ExpectedWriter) string {
	free := name
	for n := 2; slices.ContainsFunc(taken, func(e v1alpha1.ExpectedWriter) bool { return e.Name == free }); n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}

// Guard is either kind of guard.
type Guard interface {
	metav1.Object
	runtime.Object
}

// Proposal is the guard that is proposed, with the reasons for what was added.
type Proposal struct {
	// Guard is a *v1alpha1.SpecGuard or *v1alpha1.ClusterSpecGuard.
	Guard   Guard    `json:"guard"`
	Reasons []Reason `json:"reasons"`
}

func (d Draft) object() Guard {
	meta := metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}
	kind := metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: string(d.Kind)}
	if d.Kind == SpecGuard {
		return &v1alpha1.SpecGuard{TypeMeta: kind, ObjectMeta: meta, Spec: d.Spec.GuardSpec}
	}
	return &v1alpha1.ClusterSpecGuard{TypeMeta: kind, ObjectMeta: meta, Spec: d.Spec}
}
