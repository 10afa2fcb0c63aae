// SPDX-License-Identifier: Apache-2.0

package judge

import "math"

// Verdict on a stage.
type Verdict string

// The verdicts. Fail outdoes BothBad, BothBad outdoes Pass, and Pass outdoes the others.
const (
	// Fail: the canary is worse than the control, or cannot serve.
	Fail Verdict = "Fail"
	// BothBad: both arms have more failures than the stage allows. The stage holds.
	BothBad Verdict = "BothBad"
	// Pass: the stage may end.
	Pass Verdict = "Pass"
	// Undecided: the stage needs more time or more requests.
	Undecided Verdict = "Undecided"
	// NoData: the canary had no request in this stage. The stage holds.
	NoData Verdict = "NoData"
)

// Reason of a verdict.
type Reason string

// The reasons of Fail.
const (
	// Unready: fewer endpoints than required are ready, for 15 seconds.
	Unready Reason = "Unready"
	// Errors: the canary has more failures than the control, by more than r0.
	Errors Reason = "Errors"
	// Latency: the canary has more slow requests than the control, by more than r0.
	Latency Reason = "Latency"
	// Hanging: the canary has many requests in flight and answers none.
	Hanging Reason = "Hanging"
	// AboveThreshold: the canary has more failures than the stage allows, and the control has not,
	// or does not exist.
	AboveThreshold Reason = "AboveThreshold"
	// BadAfterStep: both arms have more failures than the stage allows within a minute of a step.
	BadAfterStep Reason = "BadAfterStep"
)

// The reasons of the other verdicts.
const (
	// BothAboveThreshold: both arms have more failures than the stage allows.
	BothAboveThreshold Reason = "BothAboveThreshold"
	// WithinThreshold: the canary has at most the failures that the stage allows.
	WithinThreshold Reason = "WithinThreshold"
	// WithinMargin: the ratio of the canary's failures to the control's is at most 1 + margin.
	WithinMargin Reason = "WithinMargin"
	// Blind: more than a fifth of the proxies is silent, or some of their counts are missing.
	Blind Reason = "Blind"
	// NoRequests: the canary had no request in this stage.
	NoRequests Reason = "NoRequests"
	// MinimumTime: the stage has not lasted for its minimum time.
	MinimumTime Reason = "MinimumTime"
	// LoudestProxy: the verdict would fall without one proxy.
	LoudestProxy Reason = "LoudestProxy"
	// TooFewRequests: the bounds are too wide to pass.
	TooFewRequests Reason = "TooFewRequests"
)

// Reasons are all of them.
func Reasons() []Reason {
	return []Reason{
		Unready, Errors, Latency, Hanging, AboveThreshold, BadAfterStep,
		BothAboveThreshold, WithinThreshold, WithinMargin, Blind, NoRequests, MinimumTime, LoudestProxy, TooFewRequests,
	}
}

// fewVoices are so few proxies that none is left out: the others would be no fleet.
const fewVoices = 3

// runBet is the part of the stake that is bet over the whole run. The stages after the first have
// half of what is left, each half of the one before: so a canary that goes bad late is found although
// the bets of the run have lost much by then.
const runBet = 0.8

// decide returns the verdict. It is the order of the reasons that makes Fail outdo the others.
func (j *judgment) decide() (Verdict, Reason) {
	loud := false
	for _, rule := range []struct {
		reason Reason
		holds  func(j *judgment, without *voice) bool
	}{
		{Errors, (*judgment).errorsFail}, {Latency, (*judgment).latencyFails}, {AboveThreshold, (*judgment).aboveThreshold},
	} {
		switch {
		case !rule.holds(j, nil):
		case j.standsWithoutOne(rule.holds):
			return Fail, rule.reason
		default:
			loud = true
		}
	}
	switch bad := j.bothBad(); {
	case j.unready():
		return Fail, Unready
	case j.state.hangs(j.facts):
		return Fail, Hanging
	case bad && j.facts.SinceStep < soonAfter:
		return Fail, BadAfterStep
	case bad:
		return BothBad, BothAboveThreshold
	case j.state.stage.canary.over == 0:
		return NoData, NoRequests
	case loud:
		return Undecided, LoudestProxy
	case j.state.blind():
		return Undecided, Blind
	case j.facts.Measured < j.facts.Minimum:
		return Undecided, MinimumTime
	default:
		return j.pass()
	}
}

func (j *judgment) unready() bool {
	since := j.facts.UnreadySince
	return !since.IsZero() && j.facts.Now.Sub(since) >= UnreadyLimit
}

// standsWithoutOne says that a rule holds when any one of the loudest proxies is left out, if only
// with the probability of shown bounds: with that of a verdict, each would take half as long again.
func (j *judgment) standsWithoutOne(holds func(j *judgment, without *voice) bool) bool {
	if j.state.fleet() < fewVoices {
		return true
	}
	weaker := *j
	weaker.alpha = max(Shown, j.alpha)
	for i := range j.state.loudest {
		if v := &j.state.loudest[i]; v.proxy != 0 && !holds(&weaker, v) {
			return false
		}
	}
	return true
}

// errorsFail says that the bet on more errors has paid, and that they matter.
func (j *judgment) errorsFail(without *voice) bool {
	if j.state.canary.errors.units < 2 || j.logE(without) < math.Log(1/j.alpha) {
		return false
	}
	run, stage := &j.state.canary, &j.state.stage.canary
	n, x, stageN, stageX := run.over, run.failed, stage.over, stage.failed
	if without != nil {
		n, x, stageN, stageX = n-min(n, without.n), x-min(x, without.x), stageN-min(stageN, without.stageN), stageX-min(stageX, without.stageX)
	}
	return max(rateBounds(n, x, j.phi, j.alpha).Lower, rateBounds(stageN, stageX, j.stagePhi, j.alpha).Lower) > j.config.IgnoreBelow
}

// latencyFails is the same for slow requests. Of these it is not known which proxy told of them.
func (j *judgment) latencyFails(*voice) bool {
	run, stage := &j.state.canary.latency, &j.state.stage.canary.latency
	if run.units < minLatencyCells || j.latencyLogE() < math.Log(1/j.alpha) {
		return false
	}
	return max(rateBounds(run.n, run.x, j.latencyPhi, j.alpha).Lower, rateBounds(stage.n, stage.x, j.latencyPhi, j.alpha).Lower) > j.config.IgnoreSlowBelow
}

// aboveThreshold says that the canary has more failures than the stage allows, whatever the
// control has, if that is within the stage's limit, or there is none.
func (j *judgment) aboveThreshold(without *voice) bool {
	allowed := j.facts.allowed()
	if j.bounds(without).Lower <= allowed || j.state.stage.canary.errors.units < 2 {
		return false
	}
	return j.facts.Alone || j.controlBounds.Upper <= allowed
}

// bothBad says that both arms have more failures than the stage allows.
func (j *judgment) bothBad() bool {
	allowed := j.facts.allowed()
	return j.canaryBounds.Lower > allowed && j.controlBounds.Lower > allowed
}

// pass says whether the stage passes by its threshold, or by the ratio.
func (j *judgment) pass() (Verdict, Reason) {
	allowed := j.facts.allowed()
	few := j.state.fleet() < fewVoices
	within, stands := j.canaryBounds.Upper <= allowed, true
	ratio := j.ratioBounds.Upper > 0 && j.ratioBounds.Upper <= 1+j.config.Margin
	total := &j.state.stage.canary
	for i := range j.state.stage.busiest {
		v := &j.state.stage.busiest[i]
		if few || v.proxy == 0 {
			continue
		}
		others := rateBounds(total.over-min(total.over, v.stageN), total.failed-min(total.failed, v.stageX), j.stagePhi, j.alpha)
		stands = stands && others.Upper <= allowed
		ratio = ratio && v.stageN*2 <= total.over
	}
	switch {
	case within && stands:
		return Pass, WithinThreshold
	case ratio:
		return Pass, WithinMargin
	case within:
		return Undecided, LoudestProxy
	default:
		return Undecided, TooFewRequests
	}
}
