// SPDX-License-Identifier: Apache-2.0

package judge

// maxVoices are the proxies that are kept: one with more than a fifth of all is always among them.
const maxVoices = 4

// voice has the counts of one proxy of the canary, from the cells that name the proxy.
type voice struct {
	proxy uint64
	// credit is that of Misra and Gries (1982), whose method finds the frequent ones with little room.
	credit uint64
	// n requests, of which x count, of the whole run and of the stage.
	n, x, stageN, stageX uint64
	// errors are the loss of the log ratios without the proxy.
	errors, stageErrors [bets]int64
}

// voices are the proxies with the most of something.
type voices [maxVoices]voice

// of returns the voice of a proxy that has so much more of it; nil when there is no room.
func (v *voices) of(proxy, credit uint64) *voice {
	if proxy == 0 || credit == 0 {
		return nil
	}
	free := -1
	for i := range v {
		switch {
		case v[i].proxy == proxy:
			v[i].credit += credit
			return &v[i]
		case v[i].proxy == 0 && free < 0:
			free = i
		}
	}
	if free >= 0 {
		v[free] = voice{proxy: proxy, credit: credit}
		return &v[free]
	}
	spent := credit
	for i := range v {
		spent = min(spent, v[i].credit)
	}
	for i := range v {
		if v[i].credit -= spent; v[i].credit == 0 {
			v[i] = voice{}
		}
	}
	if credit > spent {
		return v.of(proxy, credit-spent)
	}
	return nil
}

// leave forgets the stage.
func (v *voices) leave() {
	for i := range v {
		v[i].stageN, v[i].stageX, v[i].stageErrors = 0, 0, [bets]int64{}
	}
}
