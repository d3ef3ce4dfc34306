package ratelimit

import "modelgate"

// selection is the limits that apply to a call at one of its steps.
type selection struct {
	caller *modelgate.Caller
	traits *modelgate.Traits // nil on entry
	entry  bool              // the step of Enter

	gateway []draw // of all organizations together
	own     []draw // of the caller's
	others  int    // that have been judged on entry
}

// collect selects from the limits of the configuration file and those of the
// caller.
func (s *selection) collect(file []*modelgate.RateLimit) {
	s.own = make([]draw, 0, len(s.caller.RateLimits)+len(file))
	for _, r := range file {
		id, applies := s.target(r.Level)
		if !applies || replaced(r, s.caller.RateLimits, id) {
			continue
		}
		s.add(r, file, id)
	}
	for _, r := range s.caller.RateLimits {
		s.add(r, s.caller.RateLimits, "")
	}
}

// replaced reports whether the operator has set a limit for a target in place of
// one of the configuration file.
func replaced(r *modelgate.RateLimit, set []*modelgate.RateLimit, id string) bool {
	for _, o := range set {
		if o.Owner == modelgate.OwnerOperator && o.Level == r.Level && o.ID == id && o.Unit == r.Unit && o.Window == r.Window && o.Match.Same(r.Match) {
			return true
		}
	}
	return false
}

// target is the caller's part of a level.
func (s *selection) target(l modelgate.Level) (id string, applies bool) {
	switch l {
	case modelgate.LevelGateway:
		return "", true
	case modelgate.LevelClient:
		return string(s.caller.ClientID), true
	case modelgate.LevelSubAccount:
		return string(s.caller.SubAccountID), s.caller.SubAccountID != ""
	}
	return string(s.caller.KeyID), true
}

// add selects a limit of a list where it counts the call.
func (s *selection) add(r *modelgate.RateLimit, list []*modelgate.RateLimit, id string) {
	if !s.entry && r.OnEntry() {
		s.others++
		return
	}
	if r.OnEntry() != s.entry {
		return
	}
	var value string
	if !s.entry {
		counts := false
		if value, counts = r.Match.Counts(s.traits); !counts || r.Match.Each() && taken(r, list, value) {
			return
		}
	}
	d := draw{rule: r, name: bucketName{rule: r.Number, id: id, value: value}}
	if r.Level == modelgate.LevelGateway {
		s.gateway = append(s.gateway, d)
	} else {
		s.own = append(s.own, d)
	}
}

// taken reports whether an exact match of the list has taken a value over from
// one of each value.
func taken(r *modelgate.RateLimit, list []*modelgate.RateLimit, value string) bool {
	key, _ := r.Match.Tag()
	for _, o := range list {
		if o.Match == nil || o.Match.Each() || o.Owner != r.Owner || o.Level != r.Level || o.ID != r.ID || o.Unit != r.Unit || o.Window != r.Window {
			continue
		}
		if k, v := o.Match.Tag(); k == key && v == value {
			return true
		}
	}
	return false
}
