// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/readiness"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// assessor is the process that judges targets in worlds with a planner, by the rules of the real
// one ([specguard.Step]). It writes whole statuses of Baselines, answers accepts, and says of the
// guard when it sees a mass drift. Records of writes do not take part: who wrote a target last
// is taken for whoever made all differences.
type assessor struct {
	*person
	// judged are the versions of target and Baseline that were judged last, by Baseline.
	judged map[string]string
	// rechecks are when a Baseline is to be judged again, and the guard by its name.
	rechecks map[string]time.Time
	failed   bool
}

// assess is the body of an assessor that judges.
func (w *World) assess(l *schedule.Life) {
	a := &assessor{person: w.person(l, Assessor), judged: map[string]string{}, rechecks: map[string]time.Time{}}
	changed := w.watch(func(c apiserver.Commit) bool {
		return w.isTarget(c) || c.Resource.Resource == "baselines" || c.Resource.Resource == "clusterspecguards"
	})
	for {
		a.failed = false
		for _, t := range w.targets {
			if !a.behind(t) {
				continue
			}
			w.assessed.Store(false)
			late := time.Second
			if !w.calm.Load() && l.Rand().IntN(10) == 0 {
				late = 30 * time.Second
			}
			l.Sleep(time.Duration(l.Rand().Int64N(int64(late))))
			a.judge(t)
		}
		if w.plansItself {
			a.freeze()
		}
		w.assessed.Store(!a.failed && len(a.rechecks) == 0)
		l.Await(changed, a.patience())
	}
}

// patience is until when no target is judged unless one changes.
func (a *assessor) patience() time.Duration {
	patience := time.Hour
	if a.failed {
		patience = 5 * time.Second
	}
	for _, at := range a.rechecks {
		patience = min(patience, max(time.Until(at), time.Millisecond))
	}
	return patience
}

// behind says that a target is not judged as it is.
func (a *assessor) behind(t *target) bool {
	at, recheck := a.rechecks[t.baseline]
	return a.judged[t.baseline] != a.versions(t) || recheck && !time.Now().Before(at)
}

func (a *assessor) versions(t *target) string {
	o := a.w.Server.Look(t.gvk.Group, t.resource, namespace, t.name)
	b := a.w.Server.Look(group, "baselines", namespace, t.baseline)
	status, _ := b["status"].(map[string]any)
	return fmt.Sprint(metadata(o)["resourceVersion"], metadata(b)["generation"], status["contention"] != nil, status["quarantine"] != nil)
}

// judge a target, and write what follows.
func (a *assessor) judge(t *target) {
	versions := a.versions(t)
	a.failed = a.failed || !a.judges(t)
	if !a.failed {
		a.judged[t.baseline] = versions
	}
}

func (a *assessor) judges(t *target) bool {
	stored := a.ask(http.MethodGet, baselinesPath+t.baseline, "", nil)
	if stored == nil {
		return a.w.Server.Look(group, "baselines", namespace, t.baseline) == nil
	}
	b := typed[v1alpha1.Baseline](stored)
	current := a.w.decoded(a.w.Server.Look(t.gvk.Group, t.resource, namespace, t.name), t.kind)
	in := specguard.Input{
		State: specguard.FromBaseline(b, nil), Observation: a.observe(current), Rules: a.w.rules, Accept: b.Spec.Accept,
		Now: time.Now(), Config: specguard.Config{Key: []byte("of this world")},
	}
	in.State.Body, in.BodyLost = a.w.authorizedBody(b, t)
	result, err := specguard.Step(in)
	if err != nil {
		panic(fmt.Sprintf("judging %s: %v", t.name, err))
	}
	delete(a.rechecks, t.baseline)
	cleared := false
	for _, e := range result.Effects {
		switch e := e.(type) {
		case specguard.AuthorizeRevision:
			if !a.storeRevision(t, &e) {
				return false
			}
		case specguard.ClearAccept:
			cleared = true
		case specguard.Recheck:
			a.rechecks[t.baseline] = time.Now().Add(e.After)
		case specguard.Retry:
			a.rechecks[t.baseline] = time.Now().Add(e.After)
		}
	}
	return a.write(t, b, &result.State, cleared, current)
}

// observe says what the rules are told of an object.
func (a *assessor) observe(o *kube.Object) specguard.Observation {
	if o == nil {
		return specguard.Absent{SeenAt: time.Now(), NamespaceTerminating: a.w.terminating()}
	}
	body, err := o.Body()
	if err != nil {
		return specguard.Unknown{Why: err.Error()}
	}
	return specguard.Present{
		Version: specguard.Version{Body: body, ResourceVersion: o.ResourceVersion, Generation: o.Generation, Labels: o.Labels},
		UID:     string(o.UID), CreatedAt: o.CreationTimestamp.Time, Deleting: o.DeletionTimestamp != nil, SeenAt: time.Now(),
	}
}

// write stores the spec and the status of a Baseline, and says whether both are stored.
func (a *assessor) write(t *target, b *v1alpha1.Baseline, state *specguard.State, cleared bool, current *kube.Object) bool {
	next := b.DeepCopy()
	next.Spec.Authorized = state.Authorized.DeepCopy()
	if cleared {
		next.Spec.Accept = nil
	}
	if answered(b) {
		next.Spec.Lift = nil
	}
	if !equality.Semantic.DeepEqual(next.Spec, b.Spec) {
		stored := a.ask(http.MethodPut, baselinesPath+t.baseline, plain, object(next))
		if stored == nil {
			return false
		}
		a.w.count("answer to an accept")
		next = typed[v1alpha1.Baseline](stored)
	}
	before := next.Status.DeepCopy()
	state.WriteStatus(&next.Status)
	next.Status.ObservedGeneration = next.Generation
	next.Status.Guards = []string{"ClusterSpecGuard/" + guardName}
	a.name(t, next.Status.Findings)
	next.Status.Severity = rate(next.Status.Findings, before)
	rememberReady(next, current)
	a.judgeQuarantine(next)
	next = typed[v1alpha1.Baseline](object(next)) // as it is stored
	same := before.DeepCopy()
	same.Observed.ResourceVersion, same.LastCheckTime = next.Status.Observed.ResourceVersion, next.Status.LastCheckTime
	if equality.Semantic.DeepEqual(same, &next.Status) && reflect.DeepEqual(same.Selection, next.Status.Selection) {
		return true
	}
	return a.ask(http.MethodPut, baselinesPath+t.baseline+"/status", plain, object(next)) != nil
}

// name says who made differences.
func (a *assessor) name(t *target, findings []v1alpha1.Finding) {
	for i := range findings {
		who := &findings[i].Actor
		if who.User != "" {
			continue
		}
		who.User, who.Class = a.w.writers.of(t.name), v1alpha1.ActorUntrusted
		if who.User == Executor {
			who.Class = v1alpha1.ActorSystem
		}
	}
}

// rate gives the worst severity of findings, and remembers the first one.
func rate(findings []v1alpha1.Finding, before *v1alpha1.BaselineStatus) *v1alpha1.Severity {
	var all []v1alpha1.Severity
	for i := range findings {
		f := &findings[i]
		all = append(all, severity.Score(severity.Input{
			Criticality: v1alpha1.CriticalityProduction, DriftType: f.Type, Class: f.Class, Age: time.Since(f.FirstSeenTime.Time),
		}))
	}
	worst := severity.Worst(all...)
	if worst == nil {
		return nil
	}
	worst.First, worst.FirstScore = worst.Level, new(worst.Score)
	if was := before.Severity; was != nil && before.FirstSeenTime != nil {
		worst.First, worst.FirstScore = cmp.Or(was.First, worst.First), cmp.Or(was.FirstScore, new(was.Score))
	}
	return worst
}

// rememberReady notes an authorized state that is seen ready.
func rememberReady(b *v1alpha1.Baseline, current *kube.Object) {
	authorized := b.Spec.Authorized
	if b.Status.State != v1alpha1.StateInSync || current == nil || current.Ready != readiness.Ready || authorized == nil {
		return
	}
	if last := b.Status.LastReady; last == nil || last.Revision != authorized.Revision || last.Hash != authorized.Hash {
		b.Status.LastReady = &v1alpha1.ReadyRevision{Revision: authorized.Revision, Hash: authorized.Hash, ReadyTime: metav1.Now()}
	}
}

// storeRevision stores what is authorized. What a crash left of the same number is replaced.
func (a *assessor) storeRevision(t *target, e *specguard.AuthorizeRevision) bool {
	revision := storedRevision(t, e.Number, string(e.Hash), e.By, metav1.NewTime(e.At), e.Body)
	if a.ask(http.MethodPost, revisionsPath, plain, object(revision)) != nil {
		return true
	}
	found := a.ask(http.MethodGet, revisionsPath+"/"+revision.Name, "", nil)
	if found == nil {
		return false
	}
	if typed[v1alpha1.BaselineRevision](found).Spec.Hash == revision.Spec.Hash {
		return true
	}
	a.ask(http.MethodDelete, revisionsPath+"/"+revision.Name, plain, nil)
	return false
}

// freeze says of the guard whether it sees a mass drift, as its controller does.
func (a *assessor) freeze() {
	o := a.w.Server.Look(group, "clusterspecguards", "", guardName)
	if o == nil {
		return
	}
	var baselines []v1alpha1.Baseline
	for _, t := range a.w.targets {
		if b := a.w.Server.Look(group, "baselines", namespace, t.baseline); b != nil {
			baselines = append(baselines, *typedOf[v1alpha1.Baseline](a.w, b))
		}
	}
	g := typedOf[v1alpha1.ClusterSpecGuard](a.w, o)
	tally := guards.Tallies(baselines)[specguard.GuardRef{Name: guardName}]
	before := specguard.FreezeOf(&g.Status)
	if a.w.calm.Load() { // a person has looked: what lasts is what is new
		before = specguard.Freeze{}
	}
	next := specguard.NextFreeze(before, tally.Population, time.Now()).Status()
	delete(a.rechecks, guardName)
	if next != nil {
		a.rechecks[guardName] = time.Now().Add(time.Minute)
	}
	if equality.Semantic.DeepEqual(asStored(next), g.Status.MassDrift) {
		return
	}
	if next != nil {
		a.w.count("mass drift that is counted")
	}
	a.failed = a.ask(http.MethodPatch, guardPath+"/status", mergePatch, massDrift(asObject(next))) == nil || a.failed
}

func asStored(m *v1alpha1.MassDrift) *v1alpha1.MassDrift {
	if m == nil {
		return nil
	}
	return typed[v1alpha1.MassDrift](object(m))
}

// asObject is a mass drift as it is sent; nil takes one back. A merge patch keeps the scopes that
// it does not name, so all are named.
func asObject(m *v1alpha1.MassDrift) any {
	if m == nil {
		return nil
	}
	o := object(m)
	for _, scope := range []string{"everythingStartTime", "namespaces", "causes"} {
		if _, named := o[scope]; !named {
			o[scope] = nil
		}
	}
	return o
}

// terminating says that the namespace of the targets is being deleted.
func (w *World) terminating() bool {
	return metadata(w.Server.Look("", "namespaces", "", namespace))["deletionTimestamp"] != nil
}

// authorizedBody is what was authorized of a target, or why that is lost.
func (w *World) authorizedBody(b *v1alpha1.Baseline, t *target) (body []byte, lost string) {
	if b.Spec.Authorized == nil {
		return nil, ""
	}
	o := w.Server.Look(group, "baselinerevisions", namespace, b.Spec.Authorized.Revision)
	if o == nil {
		return nil, "it is gone"
	}
	raw, err := kube.Decompress(typedOf[v1alpha1.BaselineRevision](w, o).Spec.Body)
	if err != nil {
		return nil, err.Error()
	}
	doc, err := canon.Parse(raw, t.gvk)
	if err != nil {
		return nil, err.Error()
	}
	return doc.AppendCanonical(nil), ""
}

// decoded is an object of the server as the assessor keeps it, decoded once; nil for none.
func (w *World) decoded(o apiserver.Object, k *kind) *kube.Object {
	if o == nil {
		return nil
	}
	place := reflect.ValueOf(o).Pointer()
	w.readMu.Lock()
	defer w.readMu.Unlock()
	if known, ok := w.decodedOnce[place]; ok {
		return known.object
	}
	object, err := kube.Decode(encode(o), schema.GroupVersionKind(k.gvk))
	if err != nil {
		panic(fmt.Sprintf("decoding a %s: %v", k.gvk.Kind, err))
	}
	w.decodedOnce[place] = decodedObject{o, object}
	return object
}

// decodedObject is an object that was decoded.
type decodedObject struct {
	of     apiserver.Object // it keeps its place, so that no other has it
	object *kube.Object
}

// writers are who wrote each target last.
type writers struct {
	mu   sync.Mutex
	last map[string]string
}

// note is told of every stored write.
func (w *writers) note(c apiserver.Commit) {
	if !ofTarget(c) || c.Subresource != "" || c.User == "" || sameContent(c.Before, c.After) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[string]string{}
	}
	w.last[c.Name] = c.User
}

func (w *writers) of(target string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.last[target], "mallory")
}
