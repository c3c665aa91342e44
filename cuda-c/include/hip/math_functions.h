// Empty: the headers of the language already provide these declarations.
#pragma once
