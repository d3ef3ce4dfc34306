package operator

import (
	"context"
	"strings"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/store/evidence"
)

// audits lists records of changes, the newest first.
func (a *API) audits(ctx context.Context, x *exchange) (any, error) {
	p := x.query
	list := evidence.AuditList{Action: p.Filter("action"), TargetID: p.Filter("target"), From: p.Instant("from"), To: p.Instant("to"), Limit: p.Int("limit", 1, 200, 50)}
	actor, given := p.Text("actor")
	cursor, continued := p.Text("cursor")
	var err error
	if list.ClientID, err = x.organizationFilter(); err != nil {
		return nil, err
	}
	var ok bool
	if list.ActorID, ok = modelgate.ParseUUID(actor); given && !ok {
		return nil, modelgate.Errorf(modelgate.BadRequest, "actor must be the id of a key, a token, a session or a person")
	}
	filter := strings.Join([]string{"operator audit", string(list.ClientID), list.Action, list.TargetID, actor, list.From.String(), list.To.String()}, "\x00")
	if continued {
		at, err := a.Cursors.Read(cursor, filter)
		if err != nil {
			return nil, err
		}
		list.After = at.ID
	}
	records, more, err := a.Store.Audits(ctx, list)
	if err != nil {
		return nil, err
	}
	if more {
		last := &records[len(records)-1]
		x.w.Header().Set("X-Next-Cursor", a.Cursors.Sign(httpx.Position{At: last.At, ID: last.ID}, filter))
	}
	views := []auditView{}
	for i := range records {
		views = append(views, auditView{records[i], records[i].ClientID})
	}
	return views, nil
}

// organizationFilter is the parameter of that name, "" where it is left out. It ends
// the reading of the parameters.
func (x *exchange) organizationFilter() (modelgate.ClientID, error) {
	text, given := x.query.Text("organization")
	if err := x.ready(); err != nil {
		return "", err
	}
	id, ok := modelgate.ParseUUID(text)
	switch {
	case given && !ok:
		return "", modelgate.Errorf(modelgate.BadRequest, "organization must be the id of one")
	case !given:
		return "", nil
	}
	return modelgate.ClientID(id.String()), nil
}

type auditView struct {
	modelgate.Audit
	Organization modelgate.ClientID `json:"organization_id"`
}
