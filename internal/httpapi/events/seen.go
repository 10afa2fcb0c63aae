// SPDX-License-Identifier: Apache-2.0

package events

import "maps"

// Seen knows which events of the objects were given already. The zero value knows none.
type Seen struct {
	// ids are those of the events that an object told last, by the uid of the object.
	ids map[string][]ID
}

// News returns the events of an object that were not given before. all has all events of the object.
func (s *Seen) News(uid string, all []Entry) (news []Entry) {
	given := map[ID]bool{}
	for _, id := range s.ids[uid] {
		given[id] = true
	}
	ids := make([]ID, 0, len(all))
	for i := range all {
		ids = append(ids, all[i].ID)
		if !given[all[i].ID] {
			news = append(news, all[i])
		}
	}
	if s.ids == nil {
		s.ids = map[string][]ID{}
	}
	s.ids[uid] = ids
	return news
}

// Forget drops an object that is gone.
func (s *Seen) Forget(uid string) { delete(s.ids, uid) }

// Keep drops each object that is not there.
func (s *Seen) Keep(there map[string]bool) {
	maps.DeleteFunc(s.ids, func(uid string, _ []ID) bool { return !there[uid] })
}
