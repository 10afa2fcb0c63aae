// SPDX-License-Identifier: Apache-2.0

package traefik

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// State is what a Traefik has in force for a port.
type State struct {
	// Sequence of the split; 0 if requests are not divided.
	Sequence uint64
	Weights  map[string]traffic.Weight
}

// Divides tells whether the state is that of a split: its sequence and each of its weights.
func (s State) Divides(split traffic.Split) bool {
	if s.Sequence != split.Sequence || len(s.Weights) != len(split.Shares) {
		return false
	}
	for _, share := range split.Shares {
		if weight, has := s.Weights[share.Variation]; !has || weight != share.Weight {
			return false
		}
	}
	return true
}

// ReadService reads the API's answer about the weighted service of a port. A service that Traefik does not carry out is
// an error with Traefik's words.
func ReadService(served Served, answer []byte) (State, error) {
	var said struct {
		service
		Status string   `json:"status"`
		Errors []string `json:"error"`
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return State{}, fmt.Errorf("reading service %s: %w", served.Name(), err)
	}
	switch {
	case said.Status != "enabled":
		return State{}, fmt.Errorf("service %s is %.20q: %.200q", served.Name(), said.Status, said.Errors)
	case said.Weighted == nil:
		return State{}, fmt.Errorf("service %s has no weights", served.Name())
	}
	state := State{Weights: map[string]traffic.Weight{}}
	for _, c := range said.Weighted.Services {
		if c.Name == served.Name()+undividedPart {
			continue
		}
		variation, sequence, err := served.child(c.Name)
		_, twice := state.Weights[variation]
		switch {
		case err != nil:
			return State{}, err
		case variation == "" && (state.Sequence != 0 || sequence == 0) || twice:
			return State{}, fmt.Errorf("service %s has the child %.80q once more", served.Name(), c.Name)
		case variation == "":
			state.Sequence = sequence
		default:
			state.Weights[variation] = traffic.Weight(c.Weight)
		}
	}
	if state.Sequence == 0 && len(state.Weights) > 0 {
		return State{}, errors.New("service " + served.Name() + " has weights, and no sequence")
	}
	return state, nil
}
