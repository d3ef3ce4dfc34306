package operator

import (
	"context"

	"modelgate"
	"modelgate/internal/httpx"
)

// people lists the members of an organization, as GET /gw/people.
func (a *API) people(ctx context.Context, x *exchange) (any, error) {
	limit := x.query.Int("limit", 1, 200, 50)
	cursor, continued := x.query.Text("cursor")
	org, err := x.known(ctx, a)
	if err != nil {
		return nil, err
	}
	filter := "operator people\x00" + string(org)
	var after modelgate.PersonID
	if continued {
		at, err := a.Cursors.Read(cursor, filter)
		if err != nil {
			return nil, err
		}
		after = modelgate.PersonID(at.ID)
	}
	members, more, err := a.People.Members(ctx, org, after, limit)
	if err != nil {
		return nil, err
	}
	if more {
		last := &members[len(members)-1]
		x.w.Header().Set("X-Next-Cursor", a.Cursors.Sign(httpx.Position{At: last.LastSeenAt, ID: string(last.PersonID)}, filter))
	}
	return members, nil
}
