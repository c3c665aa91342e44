// There already: the headers of the language hold it.
#pragma once
