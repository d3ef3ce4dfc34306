package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/server"
	chain "modelgate/internal/store/evidence"
)

// audit groups the commands on the records of changes.
func (a *app) audit() *cobra.Command {
	return a.group("audit", "Records of what was changed, and by whom", a.auditList())
}

// audit begins the record of a change made by a command.
func audit(command, action, targetType, targetID string, change any) modelgate.Audit {
	a := server.Audit(modelgate.Actor{Operator: command}, action)
	a.TargetType, a.TargetID = targetType, targetID
	if change != nil {
		a.Change, _ = json.Marshal(change) // structs and maps of plain values always marshal
	}
	return a
}

// auditRow is a record as the operator sees it.
type auditRow struct {
	modelgate.Audit
	ClientID modelgate.ClientID `json:"client_id"`
}

// who is the actor in one word or two.
func who(a modelgate.Actor) string {
	switch {
	case a.KeyID != "":
		return "key " + string(a.KeyID)
	case a.System:
		return "the gateway"
	}
	return "operator: " + a.Operator
}

// listedRecords is how many records are listed unless the command says otherwise.
const listedRecords = 100

func (a *app) auditList() *cobra.Command {
	var client string
	limit := listedRecords
	cmd := a.list("list", "List changes of organizations, keys and money, the newest first", func(op *operation) error {
		list := chain.AuditList{Limit: max(limit, 0)}
		if client != "" {
			id, err := op.client(client)
			if err != nil {
				return err
			}
			list.ClientID = id
		}
		records, _, err := op.db.Audits(op.ctx, list)
		if err != nil {
			return err
		}
		rows := make([]auditRow, 0, len(records))
		for i := range records {
			rows = append(rows, auditRow{records[i], records[i].ClientID})
		}
		return op.out.table(rows, "AT\tACTION\tBY\tTARGET\tCLIENT", func(row func(...any)) {
			for i := range rows {
				r := &rows[i]
				row(stamp(r.At), r.Action, who(r.Actor), r.TargetType+" "+r.TargetID, r.ClientID)
			}
		})
	})
	a.clientFlag(cmd, &client, "one organization only: its `ID or name`")
	cmd.Flags().IntVar(&limit, "limit", limit, "how many; 0 is all")
	return cmd
}
