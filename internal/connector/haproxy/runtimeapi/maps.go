// SPDX-License-Identifier: Apache-2.0

package runtimeapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// SetMap gives an entry of a map a value, and adds the entry if it is not there. The file is the path
// that the configuration has.
func (c Client) SetMap(ctx context.Context, file, key, value string) error {
	err := c.Say(ctx, "set", "map", file, key, value)
	var refused *ProgramError
	if errors.As(err, &refused) && strings.HasPrefix(refused.Said, "entry not found") {
		return c.Say(ctx, "add", "map", file, key, value)
	}
	return err
}

// GetMap reads an entry of a map back; false if the map does not have it.
func (c Client) GetMap(ctx context.Context, file, key string) (value string, found bool, err error) {
	said, err := c.Do(ctx, "get", "map", file, key)
	if err != nil {
		return "", false, err
	}
	return ParseMapEntry(said)
}

// ParseMapEntry reads the answer to `get map`, such as
//
//	type=str, case=sensitive, found=yes, idx=tree, key="a", value="b", type="str"
//
// Of an answer for several maps it is an error: we ask for one.
func ParseMapEntry(said string) (value string, found bool, err error) {
	if strings.Contains(said, "\n") {
		return "", false, fmt.Errorf("reading an entry of a map: want one line, got %.200q", said)
	}
	head, rest, _ := strings.Cut(said, "found=")
	switch {
	case !strings.HasPrefix(head, "type="):
		return "", false, fmt.Errorf("reading an entry of a map: got %.200q", said)
	case rest == "no":
		return "", false, nil
	case !strings.HasPrefix(rest, "yes, "):
		return "", false, fmt.Errorf("reading an entry of a map: it is neither found nor missing in %.200q", said)
	}
	_, rest, begun := strings.Cut(rest, `", value="`)
	end := strings.LastIndex(rest, `", type="`)
	if !begun || end < 0 {
		return "", false, fmt.Errorf("reading an entry of a map: no value is in %.200q", said)
	}
	return rest[:end], true, nil
}

// MapKeys are the keys of all entries of a map.
func (c Client) MapKeys(ctx context.Context, file string) ([]string, error) {
	said, err := c.Do(ctx, "show", "map", file)
	if err != nil {
		return nil, err
	}
	return ParseMapKeys(said)
}

// ParseMapKeys reads the answer to `show map FILE`: for each entry a line with its address, its key and its value.
func ParseMapKeys(said string) (keys []string, err error) {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		const address, key, value = 0, 1, 2
		fields := strings.SplitN(line, " ", value+1)
		if len(fields) <= value || !strings.HasPrefix(fields[address], "0x") {
			return nil, fmt.Errorf("reading the keys of a map: got %.200q", line)
		}
		keys = append(keys, fields[key])
	}
	return keys, nil
}
