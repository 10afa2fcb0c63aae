// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// Breach is a promise that was broken.
type Breach struct {
	// Promise by its name: I1 to I36, L1 to L6.
	Promise string
	// Revision of the write that broke it; zero when it is about the end.
	Revision int64
	What     string
}

func (b Breach) String() string {
	return fmt.Sprintf("%s (%s) at revision %d: %s", b.Promise, promises[b.Promise], b.Revision, b.What)
}

// promises in a few words.
var promises = map[string]string{
	"I1":  "a step takes effect at most once",
	"I2":  "a step takes effect only with a stored intent",
	"I3":  "what is overwritten is what the intent names",
	"I4":  "no limit is ever passed",
	"I5":  "nothing takes effect once a plan has ended or is paused",
	"I6":  "epochs grow, and one executor holds each",
	"I7":  "steps and plans never go back",
	"I8":  "an open breaker lets nothing through, a half-open one a single step",
	"I9":  "only targets of plans are written",
	"I10": "nothing is made that was not to be made again",
	"I11": "only the ledgers grant, whatever Redis says",
	"I12": "a target belongs to one plan at a time",
	"I13": "records are whole, and are exactly the writes",
	"I14": "a step begins only while its policy is as it was planned, and nothing is halted",
	"I15": "nothing is put back that a person has accepted, or over which another state was authorized",
	"I17": "a step begins only while enough of the others are healthy",
	"I18": "batches keep their order and their pauses, and nothing begins after a failure",
	"I19": "a write leads where its dry run led",
	"I20": "the ledgers count what the steps did, and the breakers each failure",
	"I21": "what waits holds no place and no target",
	"I22": "what is verified was healthy for as long as its policy says",
	"I23": "each end of a plan has its record",
	"I24": "a step begins only over a target that no writers fight over",
	"I25": "a step begins only while its guard sees no mass drift",
	"I26": "verifying misses each record that the store forgot",
	"I31": "no step writes while a run of a release has its target",
	"I32": "a quarantine is of a step of a plan, and the assessor alone ends it",
	"I33": "no quarantine stays over an object that is as authorized, gone or another one",
	"I34": "a quarantine begins only over an object that a mesh serves, and beside another ready endpoint",
	"I16": "nothing is written outside of the hours of a policy",
	"L1":  "once nothing disturbs it any more a plan ends, and what it says is so",
	"L2":  "nothing is left in the open: intents, seals, places in the ledgers",
	"L3":  "a target is not written again and again",
	"L4":  "people are told of each end of a plan",
	"I27": "a planner makes no plan with a target that another live plan has",
	"I28": "a policy makes at most twenty plans a minute",
	"I29": "after a plan without success the next one for its object waits",
	"I35": "while effects are assessed, no breaker closes without an Effective assessment of its probe",
	"I36": "a target with a standby is written only while the standby has its requests, and no standby outlasts its plan",
	"I30": "nothing is planned of which the planner saw that it is accepted or authorized",
	"L5":  "a brake holds within minutes",
	"L6":  "once nothing disturbs it any more a drift that may be put back is put back",
}

// effect is a write of a step that changed what its target does.
type effect struct {
	apiserver.Commit
	plan *v1alpha1.RemediationPlan
	step int32
}

// judge holds everything that was stored, in its order, against the promises.
type judge struct {
	w       *World
	history []apiserver.Commit
	broken  []Breach
	seen    map[string]int
	// plans and ledgers as they are at the revision that is looked at.
	plans   map[string]*v1alpha1.RemediationPlan
	ledgers map[string]*v1alpha1.RemediationLedger
	effects []effect
	fences  []effect
	// phases are those that each plan has had, by its uid.
	phases map[string]map[string]bool
	// asked plans were to be executed by a person, which passes the hours.
	asked   map[string]bool
	permits permits
	// entries and claims say by which process places and targets were taken.
	entries map[string]taken
	claims  map[string]claimed
	// finalAt is the revision with which a plan ended.
	finalAt map[string]int64
	// waitsSince and brakedSince are since when a plan waits, and is braked.
	waitsSince, brakedSince map[string]time.Time
	judgedWait              map[string]bool
	// kept is how far the chain ever went by its ledger, and keptHeads are the digests of its heads.
	kept      int64
	keptHeads map[string]bool
	// deleted plans by their name, and ledgers as "ledger name".
	deleted map[string]bool
	// made are the plans that planners made.
	made []making
	// erased are the uids of deleted plans.
	erased map[string]bool
	// splits are the ABReleases of standbys by their names.
	splits map[string]apiserver.Object
	// verdicts that are stored, by uid of the plan and step.
	verdicts map[string]v1alpha1.EffectVerdict
}

// newJudge judges a history of a world.
func newJudge(w *World, history []apiserver.Commit, ended bool) *judge {
	j := &judge{
		w: w, history: history, seen: map[string]int{}, plans: map[string]*v1alpha1.RemediationPlan{},
		permits: permits{baselines: map[string]*v1alpha1.Baseline{}, granted: map[string]*permit{}, intended: map[string]*permit{}, runs: map[string]bool{}},
		entries: map[string]taken{}, claims: map[string]claimed{}, finalAt: map[string]int64{}, waitsSince: map[string]time.Time{}, brakedSince: map[string]time.Time{}, judgedWait: map[string]bool{},
		ledgers: map[string]*v1alpha1.RemediationLedger{}, keptHeads: map[string]bool{}, deleted: map[string]bool{}, erased: map[string]bool{}, asked: map[string]bool{}, phases: map[string]map[string]bool{}, verdicts: map[string]v1alpha1.EffectVerdict{}, splits: map[string]apiserver.Object{},
	}
	for _, c := range history {
		j.commit(c)
	}
	j.end(ended)
	return j
}

func (j *judge) breaks(promise string, revision int64, format string, args ...any) {
	j.broken = append(j.broken, Breach{promise, revision, fmt.Sprintf(format, args...)})
}

// commit looks at one write.
func (j *judge) commit(c apiserver.Commit) {
	j.yielded(c) // as all was until now
	switch c.Resource.Resource {
	case "remediationplans":
		j.plan(c)
	case "remediationledgers":
		j.ledger(c)
	case "effectivenessassessments":
		j.assessed(c)
	}
	if c.Resource.Resource == "baselines" {
		j.quarantine(c)
	}
	j.others(c)
	j.holder(c)
	j.brakes(c)
	if j.aboutStandby(c) || c.User != Executor || c.Resource.Group == group {
		return
	}
	j.write(c)
}

// write looks at a write of an executor that is about none of our own kinds.
func (j *judge) write(c apiserver.Commit) {
	plan, step := j.of(c)
	if plan == nil {
		j.breaks("I9", c.Revision, "%s %s %s/%s belongs to no plan", c.Method, c.Resource.Resource, c.Namespace, c.Name)
		return
	}
	if c.After == nil {
		j.breaks("I9", c.Revision, "an executor removed %s", c.Name)
		return
	}
	if c.Before != nil && sameContent(c.Before, c.After) {
		j.seen["fence"]++
		j.fences = append(j.fences, effect{c, plan, step})
		return
	}
	e := effect{c, plan, step}
	if j.secondCopy(e) {
		j.seen["second copy of a creation, after a deletion"]++
		return
	}
	j.seen["effect"]++
	j.seen["effect "+string(plan.Spec.Plan.Targets[step].Action)+" "+c.Resource.Kind]++
	if c.Before == nil {
		j.seen["effect that makes a "+c.Resource.Kind]++
	}
	j.once(e)
	j.intended(e)
	j.overwrites(e)
	j.within(e)
	j.inHours(e)
	j.leads(e)
	j.notEnded(e)
	j.granted(e)
	j.beside(e)
	j.stoodBy(e)
	j.effects = append(j.effects, e)
}

// of finds the step that a write belongs to, by its target and the labels that it
// carries.
func (j *judge) of(c apiserver.Commit) (*v1alpha1.RemediationPlan, int32) {
	labels, _ := metadata(c.After)["labels"].(map[string]any)
	for _, name := range planNames(j.plans) {
		p := j.plans[name]
		for i := range p.Spec.Plan.Targets {
			t := &p.Spec.Plan.Targets[i]
			fence, own := labels[evidence.LabelFence], fmt.Sprintf("%s.%d", p.UID, i)
			marked := labels[evidence.LabelPlan] == string(p.UID) && labels[evidence.LabelStep] == fmt.Sprint(i)
			fresh := labelOf(c.Before, evidence.LabelFence) != fence || metadata(c.Before)["annotations"] == nil
			if c.Resource.Kind == t.Kind && c.Name == t.Name && (marked && !sameContent(c.Before, c.After) || fence == own && (fresh || sameContent(c.Before, c.After))) {
				return p, int32(i) //nolint:gosec // few
			}
		}
	}
	return nil, 0
}

func planNames(plans map[string]*v1alpha1.RemediationPlan) []string {
	var names []string
	for name := range plans {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func metadata(o apiserver.Object) map[string]any {
	m, _ := o["metadata"].(map[string]any)
	return m
}

func labelOf(o apiserver.Object, key string) any {
	labels, _ := metadata(o)["labels"].(map[string]any)
	return labels[key]
}

// sameContent says that two states differ in nothing that anybody runs by.
func sameContent(a, b apiserver.Object) bool {
	return a != nil && b != nil && fmt.Sprint(a["spec"]) == fmt.Sprint(b["spec"])
}

func (j *judge) end(ended bool) {
	j.ends(ended)
	j.putsBack(ended)
	j.remains(ended)
	j.withoutStandbys(ended)
	j.recorded()
	j.letGo()
	for _, p := range j.plans {
		j.seen["plan "+string(p.Status.Phase)]++
		for i := range p.Status.Steps {
			s := &p.Status.Steps[i]
			j.seen["step "+string(s.State)+" "+string(s.Reason)]++
			if s.Result != nil {
				j.seen["result "+string(s.Result.Origin)]++
			}
			for _, obstacle := range []string{"NoMesh", "NotServed", "LastReadyEndpoints"} {
				if strings.Contains(s.Message, obstacle+":") {
					j.seen["step that ends with the obstacle "+obstacle]++
				}
			}
			if s.Attempts > 0 {
				j.seen["attempts"]++
			}
		}
	}
}
