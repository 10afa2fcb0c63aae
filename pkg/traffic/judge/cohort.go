// SPDX-License-Identifier: Apache-2.0

package judge

// RatioAfterCheck returns r0 for the run from the state of its cohort check. In a check the first
// cohort of visitors is served by the control's endpoints, in a slot of its own that the
// configuration calls the canary. So each difference in the rates is one between visitors. The
// result is the upper bound of the ratio that the check showed, from [DefaultR0] to [MaxR0]. A check
// that saw too little for a bound returns [DefaultR0], and false.
func RatioAfterCheck(check *State) (r0 float64, known bool) {
	phi := dispersion(&check.stage.canary.errors, &check.stage.control.errors)
	found := ratioBounds(&check.grid, &check.stage.errors, phi, checkAlpha)
	switch {
	case found.Upper > 0:
		return min(max(DefaultR0, found.Upper), MaxR0), true
	case found.Lower > DefaultR0: // so high that no bound is found
		return MaxR0, true
	default:
		return DefaultR0, false
	}
}

// checkAlpha is the error probability of the bound that a cohort check gives. A wider bound spares no
// false alarm in the simulations, and costs time to find a regression.
const checkAlpha = 0.5
