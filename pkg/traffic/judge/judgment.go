// SPDX-License-Identifier: Apache-2.0

package judge

import "math"

// minLatencyCells are the cells of the canary without which its latency is not judged: fewer say
// nothing of their dispersion.
const minLatencyCells = 3

// judgment has the figures behind a verdict.
type judgment struct {
	state  *State
	config *Config
	facts  *Facts
	// alpha of each metric.
	alpha                       float64
	phi, stagePhi, latencyPhi   float64
	canaryBounds, controlBounds Interval
	ratioBounds                 Interval
}

func (s *State) judgment(c *Config, f *Facts) judgment {
	j := judgment{state: s, config: c, facts: f, alpha: c.AlphaOf(s.restarts)}
	j.phi = dispersion(&s.canary.errors, &s.control.errors)
	j.stagePhi = max(j.phi, dispersion(&s.stage.canary.errors, &s.stage.control.errors))
	j.latencyPhi = max(j.phi, dispersion(&s.canary.latency, &s.control.latency))
	j.canaryBounds = j.bounds(nil)
	j.controlBounds = rateBounds(s.stage.control.over, s.stage.control.failed, j.stagePhi, j.alpha)
	j.ratioBounds = ratioBounds(&s.grid, &s.stage.errors, j.stagePhi, j.alpha)
	return j
}

// bounds of the canary's error rate in the stage, without a proxy if one is given.
func (j *judgment) bounds(without *voice) Interval {
	n, x := j.state.stage.canary.over, j.state.stage.canary.failed
	if without != nil {
		n, x = n-min(n, without.stageN), x-min(x, without.stageX)
	}
	return rateBounds(n, x, j.stagePhi, j.alpha)
}

// logE returns the logarithm of the payment of the bet on more errors, divided by phi, without a
// proxy if one is given.
func (j *judgment) logE(without *voice) float64 {
	run, stage := j.state.errors, [bets]int64(j.state.stage.errors[lows:])
	if without != nil {
		for i := range bets {
			run[i] = add(run[i], -without.errors[i])
			stage[i] = add(stage[i], -without.stageErrors[i])
		}
	}
	return paid(run[:], stage[:], j.state.stage.number) / j.phi
}

func (j *judgment) latencyLogE() float64 {
	return paid(j.state.latency[:], j.state.stage.latency[lows:], j.state.stage.number) / j.latencyPhi
}

// paid returns the logarithm of the stake after the bets of the run and of the stage. The part
// that is kept for later stages counts in full; the bets of the stages between are lost.
func paid(run, stage []int64, number int) float64 {
	log := math.Log(runBet) + logMean(run)
	if number <= 1 {
		return logSum(log, math.Log(1-runBet)) // nothing is bet on the first stage alone
	}
	bet := math.Log(1-runBet) - math.Ln2*float64(min(number-1, 1000))
	return logSum(log, logSum(bet+logMean(stage), bet))
}
